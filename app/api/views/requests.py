"""`GET /v1/requests`, what an organization's keys have called, and `GET /v1/platform/actions`, who did what."""

from flask import Blueprint, Response

from app.api.auth import caller, platform_caller
from app.api.listing import page_answer
from app.pages import action_pages, lists
from app.platform.keys import ORGANIZATIONS_READ
from app.request_log import requests

blueprint = Blueprint("requests", __name__)


@blueprint.get("/v1/requests")
def list_requests() -> Response:
    """Answer 200 with a page of the calls, newest first."""
    return page_answer("requests", caller(), lists.requests, requests.payload)


@blueprint.get("/v1/platform/actions")
def list_actions() -> Response:
    """Answer 200 with a page of the actions of the platform's programs, of operators and of members, newest first."""
    platform_caller(ORGANIZATIONS_READ)
    return page_answer("actions", None, action_pages.page, action_pages.actions.payload)
