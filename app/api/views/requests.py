"""`GET /v1/requests`: the calls of the organization's keys in the key's mode, of the last 30 days."""

from flask import Blueprint, Response

from app.api.auth import caller
from app.api.listing import page_answer
from app.pages import lists
from app.request_log.rows import requests

blueprint = Blueprint("requests", __name__)


@blueprint.get("/v1/requests")
def list_requests() -> Response:
    """Answer 200 with a page of the calls, newest first."""
    return page_answer("requests", caller(), lists.requests, requests.payload)
