"""*Transactions*, with a search, its sums and its file; and *Held*, the held ones."""

from functools import partial

from flask import Response, render_template, request
from wtforms import Form

from app.api_keys import Caller
from app.batches import payloads
from app.batches.read import HELD
from app.console.blueprints import pages
from app.console.caller import calling_member
from app.console.found_files import found_file
from app.console.list_queries import asked_of, is_searched
from app.console.search_forms import HeldSearch, TransactionSearch
from app.console.slow_work import searches
from app.members import members
from app.pages import transaction_pages
from app.pages.far import Totals
from app.pages.filters import Page
from app.pages.queries import PageRequest, next_cursor
from app.postgres.database import transaction
from app.postgres.standby import long_read


@pages.get("/transactions")
def list_transactions() -> str:
    with transaction() as connection:
        who = calling_member(connection)
        senders = members.find_all(connection, who.organization.id)
    return _listed("console/transactions.html", who, TransactionSearch(request.args, senders), {})


@pages.get("/held")
def held() -> str:
    with transaction() as connection:
        who = calling_member(connection)
    return _listed("console/held.html", who, HeldSearch(request.args), {"state": HELD})


@pages.get("/transactions.csv")
def transactions_file() -> Response:
    return found_file("transactions", TransactionSearch(request.args, []))


@pages.get("/held.csv")
def held_file() -> Response:
    return found_file("transactions", HeldSearch(request.args), {"state": HELD})


def _listed(template: str, who: Caller, form: Form, fixed: dict[str, str]) -> str:
    asked = asked_of("transactions", who, form, fixed)
    page: Page[transaction_pages.Row] = Page([], None)
    totals: Totals | None = None
    if not form.errors:
        with searches.turn():
            page = _page(asked)
            if is_searched(request.args) and asked.start is None:
                sums = partial(transaction_pages.totals, filters=asked.filters, first=page, limit=asked.limit)
                totals = long_read(sums)
    return render_template(
        template,
        rows=list(zip((batch for batch, _ in page.rows), payloads.transaction_payloads(page.rows), strict=True)),
        form=form,
        next_cursor=next_cursor("transactions", asked, page),
        totals=totals,
        asked=request.args,
    )


def _page(asked: PageRequest) -> Page[transaction_pages.Row]:
    found = partial(transaction_pages.page, filters=asked.filters, start=asked.start, limit=asked.limit, is_far=True)
    return long_read(found)
