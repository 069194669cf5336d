"""The types of events, and writing them, each in the transaction of its change: neither exists without the other.

For batches, reversals and claims, the statement that moves the points writes the event too (`app/ledger`, and
`app/batches/accept.sql`). Everything else calls `write`.
"""

import re
from collections.abc import Iterable, Mapping
from fnmatch import fnmatchcase
from typing import Any

import orjson
from sqlalchemy import Connection, text

from app.values.payloads import organization_payload

BATCH_SCHEDULED, BATCH_ISSUED = "batch.scheduled", "batch.issued"
BATCH_REFUSED, BATCH_CANCELLED = "batch.refused", "batch.cancelled"
BATCH_AWAITING_APPROVAL, BATCH_APPROVED, BATCH_REJECTED = "batch.awaiting_approval", "batch.approved", "batch.rejected"
TRANSACTION_CLAIMED, TRANSACTION_RETURNED = "transaction.claimed", "transaction.returned"
REVERSAL_ISSUED = "reversal.issued"
BALANCE_REFILLED, BALANCE_LOW = "balance.refilled", "balance.low"
ORGANIZATION_SUSPENDED, ORGANIZATION_RESUMED = "organization.suspended", "organization.resumed"
ORGANIZATION_DISABLED, ORGANIZATION_ENABLED = "organization.disabled", "organization.enabled"
KEY_CREATED, KEY_REVOKED = "key.created", "key.revoked"
WEBHOOK_DISABLED = "webhook.disabled"
PING = "ping"

TYPES = (
    *(BATCH_SCHEDULED, BATCH_ISSUED, BATCH_REFUSED, BATCH_CANCELLED),
    *(BATCH_AWAITING_APPROVAL, BATCH_APPROVED, BATCH_REJECTED),
    *(TRANSACTION_CLAIMED, TRANSACTION_RETURNED, REVERSAL_ISSUED, BALANCE_REFILLED, BALANCE_LOW),
    *(ORGANIZATION_SUSPENDED, ORGANIZATION_RESUMED, ORGANIZATION_DISABLED, ORGANIZATION_ENABLED),
    *(KEY_CREATED, KEY_REVOKED, WEBHOOK_DISABLED, PING),
)
# The usual patterns of types, to find the nearest one to a misspelt one.
PATTERNS = ("*", *sorted({f"{kind.partition('.')[0]}.*" for kind in TYPES if "." in kind}), *TYPES)


def types_like(glob: str) -> list[str]:
    """Return the types that match `glob`, in which `*` stands for any characters; none if it matches nothing.

    Webhooks and `GET /v1/events` choose types by it.
    """
    return [kind for kind in TYPES if fnmatchcase(kind, glob)] if GLOB.fullmatch(glob) else []


GLOB = re.compile(r"^[a-z.*]{1,64}$")


def matching(patterns: Iterable[str]) -> list[str] | None:
    """Return the types that any of the patterns matches; None if that is all of them."""
    written = set(patterns)
    if "*" in written:
        return None
    meant = {kind for pattern in written for kind in types_like(pattern)}
    return [kind for kind in TYPES if kind in meant]


def write(
    connection: Connection, kind: str, organization_id: int, *, sandbox: bool = False, data: Mapping[str, Any]
) -> None:
    """Write one event, in the transaction of the change that it reports.

    Args:
        kind: one of `TYPES`.
        sandbox: which log; events about the organization as a whole are in the live one.
        data: the payload, as JSON. It holds no e-mail address and is under 19 kB.
    """
    row = {"organization_id": organization_id, "sandbox": sandbox, "type": kind, "data": orjson.dumps(data).decode()}
    connection.execute(_WRITE, row)


_WRITE = text("""
    INSERT INTO unnumbered_events (organization_id, sandbox, type, data, created_at)
    VALUES (:organization_id, :sandbox, :type, CAST(:data AS json),
            time_of(CAST(:organization_id AS bigint), CAST(:sandbox AS boolean)))
""")


def write_of_organization(
    connection: Connection, kind: str, organization_id: int, *, sandbox: bool = False, **more: object
) -> None:
    """Write an event whose payload is the organization as it is in this transaction, and `more`."""
    row = connection.execute(_ORGANIZATION, {"id": organization_id, "sandbox": sandbox}).one()
    organization = organization_payload(**row._asdict())
    write(connection, kind, organization_id, sandbox=sandbox, data={"organization": organization, **more})


_ORGANIZATION = text("""
    SELECT id, name, is_disabled, is_suspended,
           CASE WHEN :sandbox THEN sandbox_balance ELSE balance END AS balance,
           CASE WHEN :sandbox THEN sandbox_last_refill ELSE last_refill END AS last_refill, created_at
    FROM organizations WHERE id = :id
""")
