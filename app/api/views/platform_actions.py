"""`GET /v1/platform/actions`: who did what, and when."""

from flask import Blueprint, Response

from app.api.auth import platform_caller
from app.api.listing import page_answer
from app.pages import action_pages
from app.platform.keys import ORGANIZATIONS_READ

blueprint = Blueprint("platform_actions", __name__)


@blueprint.get("/v1/platform/actions")
def list_actions() -> Response:
    """Answer 200 with a page of the actions of the platform's programs, of operators and of members, newest first."""
    platform_caller(ORGANIZATIONS_READ)
    return page_answer("actions", None, action_pages.page, action_pages.actions.payload)
