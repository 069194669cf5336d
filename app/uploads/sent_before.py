"""A list that was sent: whether it, or a recipient of it, was sent the same before; and the same list once more."""

from collections.abc import Iterator, Sequence
from datetime import datetime
from typing import Any, NamedTuple

from sqlalchemy import Connection, text

from app.batches import sent_lately
from app.batches.batch import ISSUED, NEVER_ISSUED, Batch
from app.batches.recipients import recipients_of
from app.batches.sent_lately import SentLately
from app.batches.transaction import transactions_of
from app.errors import Refused
from app.recipient_files.columns import Item
from app.recipient_files.writing import written, written_unpaid
from app.uploads import parts as upload_parts
from app.uploads.uploads import Details, UploadRow
from app.values.addresses import ERASED


class EarlierSend(NamedTuple):
    """When a list was sent before. `token` is None if `points send` sent it: then there is no upload."""

    token: str | None
    sent_at: datetime


class SentBefore(NamedTuple):
    """What is known of earlier sends to the recipients of a list.

    `same_list` is the last send to just these recipients in this order, at any time; None: there was none. `lately`
    finds each of them, in whatever list or order.
    """

    same_list: EarlierSend | None
    lately: SentLately

    @property
    def must_be_meant(self) -> bool:
        """Tell whether a member must say that the recipients are to get points again.

        As many points under another label are named, and are no reason: a reward is often the same.
        """
        return self.same_list is not None or self.lately.same + self.lately.same_label > 0

    def kept(self) -> dict[str, Any]:
        """Return it as JSON can hold it, with the same names."""
        lately = self.lately._asdict() | {"recipients": self.lately.recipients, "days": self.lately.days}
        lately["batches"] = [batch._asdict() for batch in self.lately.batches]
        same_list = self.same_list and self.same_list._asdict()
        return {"same_list": same_list, "lately": lately, "must_be_meant": self.must_be_meant}


def sent_before(connection: Connection, upload: UploadRow) -> SentBefore:
    """Return what is known of earlier sends of this organization, in this mode, to the recipients of a checked list."""
    scope = upload.scope._asdict()
    key = f"points-send-{(upload.findings or {}).get('campaign')}-1"
    row: Any = connection.execute(_LIST, {"id": upload.id, "digest": upload.digest, "key": key, **scope}).first()
    terms = {"upload_id": upload.id, "amount": upload.amount, "label": upload.label, "but_key": None}
    lately = sent_lately.find(connection, _RECIPIENTS, scope | terms)
    return SentBefore(None if row is None else EarlierSend(*row), lately)


# The second part finds a list that `points send` sent with the same amount and label. What was cancelled, rejected or
# refused has paid nobody.
_LIST = text(f"""
    SELECT token, sent_at FROM (
        (SELECT token, sent_at FROM uploads
         WHERE organization_id = :organization_id AND sandbox = :sandbox AND digest = :digest
           AND sent_at IS NOT NULL AND id <> :id
           AND EXISTS (SELECT FROM unnest(batch_ids) AS its (batch_id)
                       WHERE (SELECT status FROM batches WHERE batches.id = its.batch_id) NOT IN {NEVER_ISSUED})
         ORDER BY sent_at DESC LIMIT 1)
        UNION ALL
        SELECT NULL, created_at FROM batches
        WHERE (organization_id, sandbox, idempotency_key) = (:organization_id, :sandbox, :key)
          AND status NOT IN {NEVER_ISSUED}
    ) earlier ORDER BY sent_at DESC LIMIT 1
""")

_RECIPIENTS = """
    SELECT r.key, coalesce(r.amount, CAST(:amount AS bigint)) AS amount,
           coalesce(r.label, CAST(:label AS text)) AS label, r.reference
    FROM upload_parts p
    CROSS JOIN LATERAL unnest(coalesce(p.email_keys, p.emails), p.amounts, p.labels, p.item_references)
         AS r (key, amount, label, reference)
    WHERE p.upload_id = :upload_id
"""


class NewList(NamedTuple):
    """A list as a member would upload it, with what the member would say about it."""

    content: bytes
    name: str
    details: Details


def copy_of(connection: Connection, upload: UploadRow) -> NewList:
    """Return the recipients of a sent list as a new list, with their amounts, references and labels.

    Raises:
        Refused: its lines are no longer kept.
    """
    count = len(upload.batch_ids or ())
    parts = [upload_parts.find(connection, upload.id, number) for number in range(1, count + 1)]
    items = [item for part in parts if part is not None for item in part.items]
    if not items:
        raise Refused("The lines of this list are no longer kept: upload the list again.")
    return NewList(written(items), upload.name, Details(amount=upload.amount, label=upload.label))


def unpaid_of(connection: Connection, batch_rows: Sequence[Batch], name: str, *, is_file: bool = False) -> NewList:
    """Return the recipients of these batches who are not and will not be debited, as a new list.

    Args:
        batch_rows: batches with the same label.
        is_file: the list is to be kept elsewhere, so its rows have that label too.

    Raises:
        Refused: there are none.
    """
    items, batch_ids = [], []
    for batch in batch_rows:
        for item in _unpaid_of_batch(connection, batch):
            label = None if item.label == batch.label and not is_file else item.label
            items.append(item._replace(label=label))
            batch_ids.append(batch.id)
    if not items:
        raise Refused("Everybody was paid, or nothing is issued yet.")
    details = Details(label=batch_rows[0].label)
    return NewList(written_unpaid(items, batch_ids), f"unpaid of {name}", details)


def _unpaid_of_batch(connection: Connection, batch: Batch) -> Iterator[Item]:
    of = {"organization_id": batch.organization_id}
    if batch.status in NEVER_ISSUED:
        for email, amount, label, reference in recipients_of(connection, batch.id, **of, at_most=batch.recipient_count):
            if amount and not ERASED.fullmatch(email):
                yield Item(email, amount, reference, label)
    elif batch.status == ISSUED and batch.debited_count != batch.recipient_count:
        for row in transactions_of(connection, batch.id, **of):
            if not row.debited and not ERASED.fullmatch(row.email):
                yield Item(row.email, row.amount or batch.amount, row.reference, row.label or batch.label)
