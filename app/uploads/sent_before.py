"""Whether a list was sent before, from the console or by `points send`, and who of it was sent the same lately."""

from datetime import datetime
from typing import Any, NamedTuple

from sqlalchemy import Connection, text

from app.batches import sent_lately
from app.batches.sent_lately import SentLately
from app.uploads.uploads import UploadRow
from app.values.ids import POSITIONS


class EarlierSend(NamedTuple):
    """When a list was sent before. `token` is None if `points send` sent it: then there is no upload."""

    token: str | None
    sent_at: datetime


class SentBefore(NamedTuple):
    """What is known of earlier sends to the recipients of a list.

    `same_list` is the last send to just these recipients in this order, at any time; None: there was none. `lately`
    finds them one by one, in whatever list or order.
    """

    same_list: EarlierSend | None
    lately: SentLately

    @property
    def must_be_meant(self) -> bool:
        """Tell whether a member must say that the recipients are to get points again.

        As many points under another label are told, and are no reason: a reward is often the same.
        """
        return self.same_list is not None or self.lately.same + self.lately.same_label > 0


def sent_before(connection: Connection, upload: UploadRow) -> SentBefore:
    """Return what is known of earlier sends of this organization, in this mode, to the recipients of a checked list."""
    scope = {"organization_id": upload.organization_id, "sandbox": upload.sandbox}
    key = f"points-send-{(upload.findings or {}).get('campaign')}-1"
    row: Any = connection.execute(_LIST, {"id": upload.id, "digest": upload.digest, "key": key, **scope}).first()
    terms = {"upload_id": upload.id, "amount": upload.amount, "label": upload.label, "but_key": None}
    lately = sent_lately.find(connection, _RECIPIENTS, scope | terms)
    return SentBefore(None if row is None else EarlierSend(*row), lately)


# The second part finds a list that `points send` sent with the same amount and label.
_LIST = text("""
    SELECT token, sent_at FROM (
        (SELECT token, sent_at FROM uploads
         WHERE organization_id = :organization_id AND sandbox = :sandbox AND digest = :digest
           AND sent_at IS NOT NULL AND id <> :id
         ORDER BY sent_at DESC LIMIT 1)
        UNION ALL
        SELECT NULL, created_at FROM batches
        WHERE (organization_id, sandbox, idempotency_key) = (:organization_id, :sandbox, :key)
    ) earlier ORDER BY sent_at DESC LIMIT 1
""")

_RECIPIENTS = f"""
    SELECT p.number * CAST({POSITIONS} AS bigint) + r.place AS number, r.key,
           coalesce(r.amount, CAST(:amount AS bigint)) AS amount, coalesce(r.label, CAST(:label AS text)) AS label,
           r.reference
    FROM upload_parts p
    CROSS JOIN LATERAL unnest(coalesce(p.email_keys, p.emails), p.amounts, p.labels, p.item_references)
         WITH ORDINALITY AS r (key, amount, label, reference, place)
    WHERE p.upload_id = :upload_id
"""
