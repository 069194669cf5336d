"""Lists made from sent ones: the same recipients once more, or those that were not paid."""

from collections.abc import Sequence
from typing import NamedTuple

from sqlalchemy import Connection

from app.batches import read as batches
from app.batches.read import ISSUED, BatchRow
from app.errors import Refused
from app.recipient_files.columns import Item
from app.recipient_files.writing import written, written_unpaid
from app.uploads import parts as upload_parts
from app.uploads.uploads import Asked, UploadRow


class NewList(NamedTuple):
    """A list as a member would upload it, with what the member would say about it."""

    content: bytes
    name: str
    asked: Asked


def copy_of(connection: Connection, upload: UploadRow) -> NewList:
    """Return the recipients of a sent list as a new one, with their amounts, references and labels.

    Raises:
        Refused: its lines are no longer kept.
    """
    count = len(upload.batch_ids or ())
    parts = [upload_parts.find(connection, upload.id, number) for number in range(1, count + 1)]
    items = [item for part in parts if part is not None for item in part.items]
    if not items:
        raise Refused("The lines of this list are no longer kept: upload the list again.")
    return NewList(
        written(items), upload.name, Asked(sheet=None, column=None, amount=upload.amount, label=upload.label)
    )


def unpaid_of(connection: Connection, batch_rows: Sequence[BatchRow], name: str) -> NewList:
    """Return the recipients that the balance did not pay, of one or several batches, as a new list.

    Raises:
        Refused: there are none.
    """
    items, batch_ids = [], []
    for batch in batch_rows:
        if batch.status != ISSUED or batch.debited_count == batch.recipient_count:
            continue
        assert batch.debited_count is not None, "it is issued"
        # The balance pays the first ones, so the rest is one range.
        for row in batches.transactions_of(
            connection,
            batch.id,
            first=batch.debited_count,
            organization_id=batch.organization_id,
            at_most=batch.recipient_count - batch.debited_count,
        ):
            amount = batch.amount if row.amount is None else row.amount
            items.append(Item(row.email, amount, row.reference, row.label or batch.label))
            batch_ids.append(batch.id)
    if not items:
        raise Refused("Everybody was paid, or nothing is issued yet.")
    return NewList(
        written_unpaid(items, batch_ids), f"unpaid of {name}", Asked(sheet=None, column=None, amount=None, label=None)
    )
