"""`GET /v1/platform/actions`: who did what, and when."""

from flask import Blueprint, Response

from app.api.answers import envelope
from app.api.answers.platform import action_payload
from app.api.auth import platform_caller
from app.api.requests.query import query
from app.pages import action_pages
from app.pages.queries import next_cursor, parse_page_request
from app.platform.keys import ORGANIZATIONS_READ
from app.postgres.database import transaction

blueprint = Blueprint("platform_actions", __name__)


@blueprint.get("/v1/platform/actions")
def list_actions() -> Response:
    """Answer 200 with a page of the actions of the platform's programs, of operators and of members, newest first."""
    platform_caller(ORGANIZATIONS_READ)
    asked = parse_page_request("actions", query(), None)
    with transaction() as connection:
        page = action_pages.page(connection, asked.filters, start=asked.start, limit=asked.limit)
    shown = [action_payload(action) for action in page.rows]
    return envelope.success({"actions": shown, "next_cursor": next_cursor("actions", asked, page)})
