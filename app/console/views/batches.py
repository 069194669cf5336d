"""*Batches*: a batch with its transactions; and what is done before the issue: answer, cancel, move."""

from typing import Any

from flask import render_template, request
from sqlalchemy import Connection

from app.api_keys import Caller
from app.batches import approval, awaiting, payloads, schedule
from app.batches.batch import AWAITING_APPROVAL, ISSUED, SCHEDULED, Batch, batches
from app.batches.recipients import recipients_of
from app.batches.transaction import transactions_of
from app.console.blueprints import current_scope, pages
from app.console.caller import authors_of, calling_member
from app.console.forms import amount_of
from app.postgres.database import snapshot
from app.reversals.reversal import asked_of, of_batches
from app.reversals.sums import sums_of
from app.uploads import listed as listed_uploads

TRANSACTIONS_SHOWN = 100
REVERSALS_SHOWN = 50
_RECIPIENTS_SHOWN = 10


@pages.get("/batches/<int:batch_id>")
def show_batch(batch_id: int) -> str:
    first = (amount_of(request.args.get("from"), digits_max=6) or 1) - 1  # The first place on the page, from 0.
    with snapshot() as connection:
        who = calling_member(connection)
        batch = get_batch(connection, batch_id)
        of = {"organization_id": batch.organization_id}
        rows = transactions_of(connection, batch.id, **of, first=first, at_most=TRANSACTIONS_SHOWN)
        sums = sums_of(connection, [batch.id], **of)
        unissued = _of_unissued(connection, who, batch, first)
        reversed_by = of_batches(connection, [batch.id], who.scope, at_most=REVERSALS_SHOWN)
        asked = asked_of(connection, [reversal.id for reversal in reversed_by], **of)
        authors = authors_of(connection, [batch, *reversed_by])
        sent_from = listed_uploads.of_batch(connection, batch.id, who.scope)
        part = listed_uploads.part_of(connection, sent_from.id, batch.id) if sent_from and not batch.is_final else None
    return render_template(
        "console/batch.html",
        batch=batch,
        **unissued,
        sums=sums,
        reversals=reversed_by,
        asked=asked,
        authors=authors,
        sent_from=sent_from,
        part=part,
        transactions=payloads.transaction_payloads((batch, row) for row in rows),
        first=first,
        page_size=TRANSACTIONS_SHOWN,
        organization=who.organization,
    )


def _of_unissued(connection: Connection, who: Caller, batch: Batch, first: int) -> dict[str, Any]:
    """Return what the page shows only before the issue: whom the batch is to pay, and who may answer it until when."""
    of, awaits = {"organization_id": batch.organization_id}, batch.status == AWAITING_APPROVAL
    return {
        "recipients": []
        if batch.status == ISSUED
        else recipients_of(connection, batch.id, **of, first=first, at_most=TRANSACTIONS_SHOWN),
        "payable": schedule.payable_of(connection, [batch.id], **of)[batch.id]
        if awaits or batch.status == SCHEDULED
        else None,
        "answer_by": awaiting.answer_by(connection, batch.id, **of) if awaits else None,
        "is_own": awaits and approval.is_own(connection, who, batch),
    }


def get_batch(connection: Connection, batch_id: int) -> Batch:
    """Return a batch of the member's organization, in the mode of the page.

    Raises:
        NotFound: there is no such batch.
    """
    return batches.get(connection, batch_id, current_scope())
