"""*Batches*: the list, one batch with its transactions, and its outcome as a file."""

from functools import partial
from typing import Any

from flask import Response, render_template, request
from sqlalchemy import Connection

from app.api_keys import Caller
from app.batches import payloads, schedule
from app.batches import read as batches
from app.batches.approval import ANSWERED_WITHIN
from app.batches.payloads import sums_of
from app.batches.read import AWAITING_APPROVAL, ISSUED, SCHEDULED, BatchRow
from app.console import files, outcomes
from app.console.authors import authors_of
from app.console.blueprints import pages
from app.console.caller import calling_member
from app.console.found_files import found_file
from app.console.list_queries import asked_of, is_searched
from app.console.search_forms import BatchSearch
from app.console.slow_work import searches
from app.errors import NotFound
from app.members import members
from app.pages import batch_pages
from app.pages.filters import Page
from app.pages.queries import next_cursor
from app.postgres.database import transaction
from app.postgres.standby import long_read
from app.reversals import read as reversals
from app.uploads import listed

TRANSACTIONS_SHOWN = 100
_REVERSALS_SHOWN = 50


@pages.get("/batches")
def list_batches() -> str:
    with transaction() as connection:
        who = calling_member(connection)
        senders = members.find_all(connection, who.organization.id)
    form = BatchSearch(request.args, senders)
    asked = asked_of("batches", who, form)
    page: Page[BatchRow] = Page([], None)
    totals: batch_pages.Totals | None = None
    if not form.errors:
        found = partial(batch_pages.page, filters=asked.filters, start=asked.start, limit=asked.limit, is_far=True)
        with searches.turn():
            page = long_read(found)
        # Of one address the points are not those of its batches.
        if is_searched(request.args) and asked.start is None and asked.filters.email_key is None:
            sums = partial(batch_pages.totals, filters=asked.filters, first=page, limit=asked.limit)
            with searches.turn():
                totals = long_read(sums)
    return render_template(
        "console/batches.html",
        batches=page.rows,
        form=form,
        next_cursor=next_cursor("batches", asked, page),
        totals=totals,
        asked=request.args,
    )


@pages.get("/batches.csv")
def batches_file() -> Response:
    return found_file("batches", BatchSearch(request.args, []))


@pages.get("/batches/<int:batch_id>")
def show_batch(batch_id: int) -> str:
    first = _first_place()
    with transaction() as connection:
        who = calling_member(connection)
        batch = get_batch(connection, who, batch_id)
        rows = batches.transactions_of(
            connection, batch.id, first=first, organization_id=batch.organization_id, at_most=TRANSACTIONS_SHOWN
        )
        sums = sums_of(connection, [batch.id], organization_id=batch.organization_id)
        points = (
            schedule.points_of(connection, batch.id, organization_id=batch.organization_id)
            if batch.status in (AWAITING_APPROVAL, SCHEDULED)
            else None
        )
        scope: dict[str, Any] = {"organization_id": who.organization.id, "sandbox": who.sandbox}
        reversed_by = reversals.of_batch(connection, batch.id, **scope, at_most=_REVERSALS_SHOWN)
        authors = authors_of(connection, [batch, *reversed_by])
        sent_from = listed.of_batch(connection, batch.id, **scope)
        part = listed.part_of(connection, sent_from.id, batch.id) if sent_from and not batch.is_final else None
    return render_template(
        "console/batch.html",
        batch=batch,
        points=points,
        answer_by=batch.created_at + ANSWERED_WITHIN,
        sums=sums,
        reversals=reversed_by,
        authors=authors,
        sent_from=sent_from,
        part=part,
        transactions=payloads.transaction_payloads((batch, row) for row in rows),
        first=first,
        shown=TRANSACTIONS_SHOWN,
        organization=who.organization,
    )


@pages.get("/batches/<int:batch_id>/outcome.csv", defaults={"kind": files.CSV})
@pages.get("/batches/<int:batch_id>/outcome.xlsx", defaults={"kind": files.XLSX})
def batch_file(batch_id: int, kind: str) -> Response:
    with transaction() as connection:
        batch = get_batch(connection, calling_member(connection), batch_id)
    if batch.status != ISSUED:
        raise NotFound("outcome yet of batch", batch_id)
    return outcomes.of_batch(batch, kind)


def get_batch(connection: Connection, who: Caller, batch_id: int) -> BatchRow:
    """Return a batch of the member's organization, in the mode of the page.

    Raises:
        NotFound: there is no such batch.
    """
    return batches.get(connection, batch_id, organization_id=who.organization.id, sandbox=who.sandbox)


def _first_place() -> int:
    """Return the place of the first transaction to show, from 0."""
    text = request.args.get("from", "")
    number = int(text) if text.isascii() and text.isdigit() and len(text) <= 6 else 1
    return max(number, 1) - 1
