"""*Transactions*, with a search by address, reference and state; and *Held*, the held ones."""

from flask import render_template, request

from app.batches import payloads
from app.batches.read import HELD, STATES
from app.console.blueprints import pages
from app.console.caller import calling_member
from app.console.list_queries import asked_of
from app.pages import transaction_pages
from app.pages.filters import Page
from app.pages.queries import PageRequest, next_cursor
from app.postgres.database import transaction


@pages.get("/transactions")
def list_transactions() -> str:
    return _listed("console/transactions.html", {})


@pages.get("/held")
def held() -> str:
    return _listed("console/held.html", {"state": HELD})


def _listed(template: str, fixed: dict[str, str]) -> str:
    with transaction() as connection:
        who = calling_member(connection)
    asked, faults = asked_of("transactions", who, fixed)
    page: Page[transaction_pages.Row] = Page([], None)
    if not faults:
        page = _page(asked)
    return render_template(
        template,
        rows=list(zip((batch for batch, _ in page.rows), payloads.transaction_payloads(page.rows), strict=True)),
        faults=faults,
        next_cursor=next_cursor("transactions", asked, page),
        states=STATES,
        asked=request.args,
    )


def _page(asked: PageRequest) -> Page[transaction_pages.Row]:
    with transaction() as connection:
        return transaction_pages.page(connection, asked.filters, start=asked.start, limit=asked.limit)
