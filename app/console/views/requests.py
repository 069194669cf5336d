"""*Requests*: what programs called with the organization's keys, in the mode of the page."""

from functools import partial

from flask import render_template, request

from app import api_keys
from app.console.blueprints import pages
from app.console.caller import calling_member
from app.console.list_queries import asked_of
from app.console.search_forms import RequestSearch
from app.console.slow_work import searches
from app.pages import lists
from app.pages.filters import Page
from app.pages.queries import next_cursor
from app.postgres.database import transaction
from app.postgres.standby import long_read
from app.request_log.rows import RequestRow


@pages.get("/requests")
def list_requests() -> str:
    with transaction() as connection:
        who = calling_member(connection)
        keys = api_keys.find_all(connection, who.organization.id)
    form = RequestSearch(request.args, [key for key in keys if key.sandbox == who.sandbox])
    asked = asked_of("requests", who, form, {})
    page: Page[RequestRow] = Page([], None)
    if not form.errors:
        found = partial(lists.requests, filters=asked.filters, start=asked.start, limit=asked.limit, is_far=True)
        with searches.turn():
            page = long_read(found)
    return render_template(
        "console/requests.html",
        requests=page.rows,
        form=form,
        next_cursor=next_cursor("requests", asked, page),
        asked=request.args,
    )
