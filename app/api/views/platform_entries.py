"""`GET /v1/platform/users/{id}/entries`: what made a user's balance, newest first."""

from flask import Blueprint, Response

from app import users
from app.api.answers import envelope
from app.api.answers.platform import entry_payload
from app.api.auth import platform_caller
from app.api.requests.query import query
from app.pages import entry_pages
from app.pages.queries import next_cursor, parse_page_request
from app.platform.keys import USERS_READ
from app.postgres.database import single_statement, transaction

blueprint = Blueprint("platform_entries", __name__)


@blueprint.get("/v1/platform/users/<int:user_id>/entries")
def list_entries(user_id: int) -> Response:
    """Answer 200 with a page of the entries.

    Raises:
        InvalidRequest: with every fault of the query.
        NotFound: there is no such user.
    """
    platform_caller(USERS_READ)
    asked = parse_page_request("entries", query(), None, user_id=user_id)
    with single_statement() as connection:
        users.require(connection, user_id)
    with transaction() as connection:
        page = entry_pages.page(connection, asked.filters, start=asked.start, limit=asked.limit)
    shown = [entry_payload(entry) for entry in page.rows]
    return envelope.success({"entries": shown, "next_cursor": next_cursor("entries", asked, page)})
