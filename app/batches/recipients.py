"""The recipients of a batch: whom it is to pay, before the issue and after it."""

from collections.abc import Sequence
from typing import Annotated, NamedTuple

from sqlalchemy import Connection, text

from app.batches.batch import Batch
from app.noun import Noun
from app.noun_fields import Points, says


class Recipient(NamedTuple):
    """A recipient of a batch, whether it is issued or not; with 0 points if it was erased before the issue."""

    email: Annotated[
        str, says("The address as it was sent, trimmed; `erased-<id>` of an erased user.", "ada@example.com")
    ]
    amount: Annotated[Points, says("Points for this recipient.", 50)]
    label: Annotated[str | None, says("The label of its item, or of the batch; null if they have none.", None)]
    reference: Annotated[str | None, says("The caller's own id of its item; null if it has none.", None)]


recipients = Noun(Recipient, "recipient", "recipients", schema="BatchRecipient")


def recipients_of(
    connection: Connection, batch_id: int, *, organization_id: int, first: int = 0, at_most: int
) -> list[Recipient]:
    """Return up to `at_most` recipients of a batch in request order, from position `first` on."""
    parameters = {"id": batch_id, "organization_id": organization_id, "first": first + 1, "last": first + at_most}
    return list(map(Recipient._make, connection.execute(_RECIPIENTS, parameters)))


def recipients_of_all(
    connection: Connection, batches: Sequence[Batch], *, first: int = 0, at_most: int
) -> list[Recipient]:
    """Return up to `at_most` recipients of batches one after the other, from place `first` of all on."""
    rows = list[Recipient]()
    for batch in batches:
        if first < batch.recipient_count and len(rows) < at_most:
            of = {"organization_id": batch.organization_id, "at_most": at_most - len(rows)}
            rows += recipients_of(connection, batch.id, first=first, **of)
        first = max(0, first - batch.recipient_count)
    return rows


_RECIPIENTS = text("""
    SELECT r.email, coalesce(r.total - r.before, b.amount), coalesce(r.label, b.label), r.reference
    FROM batches b
    CROSS JOIN LATERAL (SELECT coalesce(b.payable_totals, b.running_totals) AS totals) its
    CROSS JOIN LATERAL unnest(b.emails[:first : :last], its.totals[:first : :last],
                              CASE WHEN its.totals IS NOT NULL
                                   THEN (array_prepend(0, its.totals))[:first : :last] END, b.labels[:first : :last],
                              b.item_references[:first : :last])
                           WITH ORDINALITY AS r (email, total, before, label, reference, place)
    WHERE b.id = :id AND b.organization_id = :organization_id AND r.email IS NOT NULL ORDER BY r.place
""")
