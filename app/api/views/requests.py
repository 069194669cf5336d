"""`GET /v1/requests`: the calls of the organization's keys in the key's mode, of the last 30 days."""

from flask import Blueprint, Response

from app.api.answers import envelope
from app.api.answers.requests import request_payload
from app.api.auth import caller
from app.api.requests.query import query
from app.pages import request_pages
from app.pages.queries import next_cursor, parse_page_request
from app.postgres.database import transaction

blueprint = Blueprint("requests", __name__)


@blueprint.get("/v1/requests")
def list_requests() -> Response:
    """Answer 200 with a page of the calls, newest first."""
    who = caller()
    asked = parse_page_request("requests", query(), who)
    with transaction() as connection:
        page = request_pages.page(connection, asked.filters, start=asked.start, limit=asked.limit)
    shown = [request_payload(call) for call in page.rows]
    return envelope.success({"requests": shown, "next_cursor": next_cursor("requests", asked, page)})
