"""Writing events, each in the transaction of its change: neither exists without the other.

For batches, reversals and claims, the statement that moves the points writes the event too (`app/ledger`, and
`app/batches/accept.sql`), and so does that which registers users. Everything else calls a function of this file.

An organization has a log in each mode. The platform has one, `PLATFORM`, which tells of users and organizations.
"""

from collections.abc import Mapping
from typing import Any

import orjson
from sqlalchemy import Connection, text

from app.events.event_types import PLATFORM, USER_REGISTERED


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
