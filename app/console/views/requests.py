"""*Requests*: what programs called with the organization's keys, in the mode of the page."""

from flask import render_template, request

from app import api_keys
from app.console.blueprints import pages
from app.console.caller import calling_member
from app.console.list_queries import asked_of
from app.console.slow_work import searches
from app.pages import request_pages
from app.pages.filters import Page
from app.pages.queries import next_cursor
from app.pages.request_pages import RequestRow
from app.postgres.database import transaction

# What the form offers: all of a hundred, and the statuses that a caller meets.
_STATUSES = (
    "2xx",
    "4xx",
    "5xx",
    *map(str, (200, 201, 202, 400, 401, 403, 404, 405, 408, 409, 413, 415, 422, 429, 503)),
)


@pages.get("/requests")
def list_requests() -> str:
    with transaction() as connection:
        who = calling_member(connection)
        keys = api_keys.find_all(connection, who.organization.id)
    asked, faults = asked_of("requests", who)
    page: Page[RequestRow] = Page([], None)
    if not faults:
        with searches.turn(), transaction() as connection:
            page = request_pages.page(connection, asked.filters, start=asked.start, limit=asked.limit, is_far=True)
    return render_template(
        "console/requests.html",
        requests=page.rows,
        keys=[key for key in keys if key.sandbox == who.sandbox],
        statuses=_STATUSES,
        faults=faults,
        next_cursor=next_cursor("requests", asked, page),
        asked=request.args,
    )
