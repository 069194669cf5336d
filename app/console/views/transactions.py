"""*Transactions*, with a search, its sums and its file; and *Held*, the held ones."""

from flask import Response, render_template, request

from app.batches import payloads
from app.batches.read import HELD, STATES
from app.console import found_files
from app.console.blueprints import pages
from app.console.caller import calling_member
from app.console.list_queries import asked_of, is_searched
from app.console.slow_work import searches
from app.errors import InvalidRequest
from app.members import members
from app.pages import transaction_pages
from app.pages.far import Totals
from app.pages.filters import Page
from app.pages.queries import PageRequest, next_cursor
from app.postgres.database import transaction


@pages.get("/transactions")
def list_transactions() -> str:
    return _listed("console/transactions.html", {})


@pages.get("/held")
def held() -> str:
    return _listed("console/held.html", {"state": HELD})


@pages.get("/transactions.csv")
def transactions_file() -> Response:
    return _file({})


@pages.get("/held.csv")
def held_file() -> Response:
    return _file({"state": HELD})


def _listed(template: str, fixed: dict[str, str]) -> str:
    with transaction() as connection:
        who = calling_member(connection)
        senders = members.find_all(connection, who.organization.id)
    asked, faults = asked_of("transactions", who, fixed)
    page: Page[transaction_pages.Row] = Page([], None)
    totals: Totals | None = None
    if not faults:
        with searches.turn():
            page = _page(asked)
            if is_searched(request.args) and asked.start is None:
                with transaction() as connection:
                    totals = transaction_pages.totals(connection, asked.filters, page, limit=asked.limit)
    return render_template(
        template,
        rows=list(zip((batch for batch, _ in page.rows), payloads.transaction_payloads(page.rows), strict=True)),
        faults=faults,
        next_cursor=next_cursor("transactions", asked, page),
        states=STATES,
        senders=senders,
        totals=totals,
        asked=request.args,
    )


def _page(asked: PageRequest) -> Page[transaction_pages.Row]:
    with transaction() as connection:
        return transaction_pages.page(connection, asked.filters, start=asked.start, limit=asked.limit, is_far=True)


def _file(fixed: dict[str, str]) -> Response:
    with transaction() as connection:
        asked, faults = asked_of("transactions", calling_member(connection), fixed)
    if faults:
        raise InvalidRequest({name: [sentence] for name, sentence in faults.items()})
    return found_files.of_transactions(asked.filters)
