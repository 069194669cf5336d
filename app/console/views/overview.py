"""*Overview*: the balance, held points, scheduled batches, and the latest batches."""

from dataclasses import replace

from flask import render_template

from app import organizations
from app.batches import read as batches
from app.batches import schedule
from app.console.blueprints import current_member, is_sandbox, pages
from app.pages import batch_pages, transaction_pages
from app.pages.filters import Filters
from app.postgres.database import single_statement, transaction

_BATCHES_SHOWN = 10
_HELD_LOOKED_AT = 1_000


@pages.get("")
def overview() -> str:
    organization_id, sandbox = current_member().organization_id, is_sandbox()
    with single_statement() as connection:
        organization = organizations.get(connection, organization_id, sandbox=sandbox)
        scheduled = schedule.scheduled_of(connection, organization_id, sandbox=sandbox)
        options = organizations.find_options(connection, [organization_id])[organization_id]
    every = Filters(organization_id=organization_id, sandbox=sandbox)
    # Each page needs its own transaction, because it changes PostgreSQL's planner settings there.
    with transaction() as connection:
        late = batch_pages.page(connection, every, start=None, limit=_BATCHES_SHOWN)
    with transaction() as connection:
        held = transaction_pages.page(connection, replace(every, state=batches.HELD), start=None, limit=_HELD_LOOKED_AT)
    return render_template(
        "console/overview.html",
        organization=organization,
        # The limit is for the live balance only.
        low_balance=None if sandbox else options.low_balance,
        scheduled=scheduled,
        batches=late.rows,
        held_count=len(held.rows),
        held_points=sum(_left(batch, row) for batch, row in held.rows),
        holds_more=held.next is not None,
    )


def _left(batch: batches.BatchRow, row: batches.TransactionRow) -> int:
    """Return the points of a held transaction without those taken back."""
    amount = batch.amount if row.amount is None else row.amount
    return (amount or 0) if row.points_left is None else row.points_left
