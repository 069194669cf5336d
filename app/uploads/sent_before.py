"""Whether a list was sent before, from the console or by `points send`."""

from datetime import datetime
from typing import Any, NamedTuple

from sqlalchemy import Connection, text

from app.uploads.uploads import UploadRow


class EarlierSend(NamedTuple):
    """When a list was sent before. `token` is None if `points send` sent it: then there is no upload."""

    token: str | None
    sent_at: datetime


def sent_before(connection: Connection, upload: UploadRow) -> EarlierSend | None:
    """Return when this organization last sent to the same recipients in this mode; None: never."""
    parameters = {
        "id": upload.id,
        "organization_id": upload.organization_id,
        "sandbox": upload.sandbox,
        "digest": upload.digest,
        "key": f"points-send-{(upload.findings or {}).get('campaign')}-1",
    }
    row: Any = connection.execute(_SENT_BEFORE, parameters).first()
    return None if row is None else EarlierSend(*row)


# The second part finds a list that `points send` sent with the same amount and label.
_SENT_BEFORE = text("""
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
