"""*Batches*: the list, one batch with its transactions, and its outcome as a file."""

from flask import Response, render_template, request
from sqlalchemy import Connection

from app.api_keys import Caller
from app.batches import payloads, schedule
from app.batches import read as batches
from app.batches.read import ISSUED, SCHEDULED, STATUSES, BatchRow, StateCounts
from app.console import outcomes
from app.console.blueprints import pages
from app.console.caller import calling_member
from app.console.list_queries import asked_of
from app.errors import NotFound
from app.pages import batch_pages
from app.pages.filters import Page
from app.pages.queries import next_cursor
from app.postgres.database import transaction
from app.uploads import uploads

TRANSACTIONS_SHOWN = 100


@pages.get("/batches")
def list_batches() -> str:
    with transaction() as connection:
        who = calling_member(connection)
    asked, faults = asked_of("batches", who)
    page: Page[BatchRow] = Page([], None)
    if not faults:
        with transaction() as connection:
            page = batch_pages.page(connection, asked.filters, start=asked.start, limit=asked.limit)
    return render_template(
        "console/batches.html",
        batches=page.rows,
        faults=faults,
        next_cursor=next_cursor("batches", asked, page),
        statuses=STATUSES,
        asked=request.args,
    )


@pages.get("/batches/<int:batch_id>")
def show_batch(batch_id: int) -> str:
    first = _first_place()
    with transaction() as connection:
        who = calling_member(connection)
        batch = find_batch(connection, who, batch_id)
        rows = batches.transactions_between(connection, batch.id, first, at_most=TRANSACTIONS_SHOWN)
        states = batches.count_states(connection, [batch.id]).get(batch.id, StateCounts())
        points = schedule.points_of(connection, batch.id) if batch.status == SCHEDULED else None
        metadata = batches.find_metadata(connection, [batch.id]).get(batch.id)
    return render_template(
        "console/batch.html",
        batch=batch,
        points=points,
        new_token=uploads.new_token,
        body=payloads.listed_batch_payload(batch, states=states, metadata=metadata),
        transactions=payloads.transaction_payloads((batch, row) for row in rows),
        first=first,
        shown=TRANSACTIONS_SHOWN,
        organization=who.organization,
    )


@pages.get("/batches/<int:batch_id>/outcome.csv")
def batch_file(batch_id: int) -> Response:
    with transaction() as connection:
        batch = find_batch(connection, calling_member(connection), batch_id)
    if batch.status != ISSUED:
        raise NotFound("outcome yet of batch", batch_id)
    return outcomes.of_batch(batch)


def find_batch(connection: Connection, who: Caller, batch_id: int) -> BatchRow:
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
