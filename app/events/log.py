"""The types of events, and writing them, each in the transaction of its change: neither exists without the other.

For batches, reversals and claims, the statement that moves the points writes the event too (`app/ledger`, and
`app/batches/accept.sql`), and so does that which registers users. Everything else calls a function of this file.

An organization has a log in each mode. The platform has one, `PLATFORM`, which tells of users and organizations.
"""

import re
from collections.abc import Iterable, Mapping, Sequence
from fnmatch import fnmatchcase
from typing import Any

import orjson
from sqlalchemy import Connection, text

BATCH_SCHEDULED, BATCH_ISSUED = "batch.scheduled", "batch.issued"
BATCH_REFUSED, BATCH_CANCELLED = "batch.refused", "batch.cancelled"
BATCH_AWAITING_APPROVAL, BATCH_APPROVED, BATCH_REJECTED = "batch.awaiting_approval", "batch.approved", "batch.rejected"
TRANSACTION_CLAIMED, TRANSACTION_RETURNED = "transaction.claimed", "transaction.returned"
REVERSAL_ISSUED = "reversal.issued"
BALANCE_REFILLED, BALANCE_LOW = "balance.refilled", "balance.low"
ORGANIZATION_SUSPENDED, ORGANIZATION_RESUMED = "organization.suspended", "organization.resumed"
ORGANIZATION_DISABLED, ORGANIZATION_ENABLED = "organization.disabled", "organization.enabled"
KEY_CREATED, KEY_REVOKED, KEY_LIMIT_REACHED = "key.created", "key.revoked", "key.limit_reached"
WEBHOOK_DISABLED = "webhook.disabled"
PING = "ping"
USER_REGISTERED, USER_CHANGED, USER_ERASED = "user.registered", "user.changed", "user.erased"
ORGANIZATION_CREATED = "organization.created"

TYPES = (
    *(BATCH_SCHEDULED, BATCH_ISSUED, BATCH_REFUSED, BATCH_CANCELLED),
    *(BATCH_AWAITING_APPROVAL, BATCH_APPROVED, BATCH_REJECTED),
    *(TRANSACTION_CLAIMED, TRANSACTION_RETURNED, REVERSAL_ISSUED, BALANCE_REFILLED, BALANCE_LOW),
    *(ORGANIZATION_SUSPENDED, ORGANIZATION_RESUMED, ORGANIZATION_DISABLED, ORGANIZATION_ENABLED),
    *(KEY_CREATED, KEY_REVOKED, KEY_LIMIT_REACHED, WEBHOOK_DISABLED, PING),
)
# The types in the log of the platform.
PLATFORM_TYPES = (
    *(USER_REGISTERED, USER_CHANGED, USER_ERASED, ORGANIZATION_CREATED, BALANCE_REFILLED),
    *(ORGANIZATION_SUSPENDED, ORGANIZATION_RESUMED, ORGANIZATION_DISABLED, ORGANIZATION_ENABLED),
)
# Where the log of the platform stands among those of organizations, whose ids begin at 1.
PLATFORM = 0
# The usual patterns of types, to find the nearest to a misspelt pattern.
PATTERNS = ("*", *sorted({f"{kind.partition('.')[0]}.*" for kind in TYPES if "." in kind}), *TYPES)


def types_like(glob: str, types: Sequence[str] = TYPES) -> list[str]:
    """Return those of `types` that match `glob`, in which `*` stands for any characters; none if it matches nothing.

    Webhooks and the calls that read a log choose types by it.
    """
    return [kind for kind in types if fnmatchcase(kind, glob)] if GLOB.fullmatch(glob) else []


GLOB = re.compile(r"^[a-z._*]{1,64}$")


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
    """Write an event, in the transaction of the change that it reports.

    Args:
        kind: one of `TYPES`, or of `PLATFORM_TYPES` if `organization_id` is `PLATFORM`.
        sandbox: which log; events about the organization as a whole are in the live log.
        data: the payload, as JSON. It holds no e-mail address and is under 19 kB.
    """
    row = {"organization_id": organization_id, "sandbox": sandbox, "type": kind, "data": orjson.dumps(data).decode()}
    connection.execute(_WRITE, row)


_WRITE = text("""
    INSERT INTO unnumbered_events (organization_id, sandbox, type, data, created_at)
    VALUES (:organization_id, :sandbox, :type, CAST(:data AS json),
            time_of(CAST(:organization_id AS bigint), CAST(:sandbox AS boolean)))
""")


def write_of_user(connection: Connection, kind: str, user_id: int, **more: object) -> None:
    """Write an event about a user in the log of the platform. It has the id alone: there is nothing to erase in it."""
    write(connection, kind, PLATFORM, data={"user": {"id": user_id}, **more})


# What a statement that registers users has beside: their events. `new` is the part of it that returns their ids.
OF_REGISTERED_USERS = f"""
        INSERT INTO unnumbered_events (organization_id, sandbox, type, data)
        SELECT {PLATFORM}, false, '{USER_REGISTERED}', json_build_object('user', json_build_object('id', id)) FROM new
"""
