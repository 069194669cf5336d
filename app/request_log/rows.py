"""The calls of keys in PostgreSQL: written in bulk, and dropped after 30 days."""

from collections.abc import Sequence
from datetime import datetime
from typing import Annotated, NamedTuple

import orjson
from sqlalchemy import Connection, text

from app.noun import Id, Noun, says

REQUESTS_KEPT_DAYS = 30


class Call(NamedTuple):
    """One call of a key, as it was answered.

    `request_id` holds no address, `created_at` is in seconds since 1970, `route` is the template of the path or None if
    there is no such call, `code` is that of the answer, and `batch_id` the batch that it was about.
    """

    key_hash: bytes
    request_id: str
    created_at: float
    method: str
    route: str | None
    status: int
    code: str | None
    batch_id: int | None
    ms: int


class RequestRow(NamedTuple):
    """A call that one of the organization's keys made."""

    id: int
    request_id: Annotated[
        str,
        says(
            "Its `X-Request-Id`. An id with an @ is shown as the beginning of its SHA-256, as in the service's own"
            " log.",
            "8f14e45fceea167a5a36dedd4bea2543",
        ),
    ]
    created_at: Annotated[
        datetime, says("When it arrived. ISO 8601 in UTC, six decimals.", "2026-01-31T09:30:00.471006Z")
    ]
    api_key_id: Annotated[Id, says("The id of its key.", 1)]
    method: Annotated[str, says("Its method.", "POST")]
    route: Annotated[
        str | None, says("Its path, with `{id}` for each id; null if there is no such call.", "/v1/points/send")
    ]
    status: Annotated[int, says("The status of the answer.", 201, ge=200, le=599)]
    code: Annotated[str | None, says("The `additional_data.code` of the answer; null if it has none.", None)]
    batch_id: Annotated[Id | None, says("The batch that it sent, read, moved or cancelled; null if none.", 1)]
    ms: Annotated[int, says("How long it took, in milliseconds, with its body and its wait.", 12, ge=0)]


requests = Noun(RequestRow, "request", "requests", schema="Request")


def write(connection: Connection, calls: Sequence[Call]) -> None:
    """Write calls, each for the organization and the mode of its key. A key that nobody has is left out.

    The commit does not wait for the disk: a crash of PostgreSQL may lose what was written just before.
    """
    document = orjson.dumps([call._asdict() | {"key_hash": call.key_hash.hex()} for call in calls])
    connection.execute(_DO_NOT_WAIT)
    connection.execute(_WRITE, {"calls": document.decode()})


_DO_NOT_WAIT = text("SET LOCAL synchronous_commit = off")
_WRITE = text("""
    INSERT INTO api_requests
           (organization_id, sandbox, api_key_id, created_at, request_id, method, route, status, code, batch_id, ms)
    SELECT k.organization_id, k.sandbox, k.id, to_timestamp(c.created_at), c.request_id, c.method, c.route, c.status,
           c.code, c.batch_id, c.ms
    FROM json_to_recordset(CAST(:calls AS json)) AS c
         (key_hash text, request_id text, created_at double precision, method text, route text, status int, code text,
          batch_id bigint, ms int)
    JOIN api_keys k ON k.hash = decode(c.key_hash, 'hex')
    ORDER BY c.created_at
""")


def drop_old_requests(connection: Connection, *, at_most: int) -> int:
    """Drop up to `at_most` calls past their time, of the first written; return how many."""
    return connection.execute(_DROP, {"days": REQUESTS_KEPT_DAYS, "at_most": at_most}).rowcount


# Ids go by the time of writing, so the index of ids finds the oldest: no other index is kept for it.
_DROP = text("""
    DELETE FROM api_requests
    WHERE id = ANY(ARRAY(SELECT id FROM api_requests ORDER BY id LIMIT :at_most))
      AND created_at < (SELECT clock_timestamp()) - make_interval(days => :days)
""")
