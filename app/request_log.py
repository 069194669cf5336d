"""What each key has called: kept by the web process that answered, written in bulk, dropped after 30 days.

`app/web/recording.py` keeps a call as it answers it. `app/pages/lists.py` lists the rows.
"""

import threading
from collections import deque
from collections.abc import Callable, Collection, Sequence
from datetime import datetime
from typing import Annotated, NamedTuple

import orjson
from sqlalchemy import Connection, text

from app import logs
from app.noun import Noun
from app.noun_fields import Id, says
from app.postgres.database import transaction
from app.values.numbers import counted

REQUESTS_KEPT_DAYS = 30


class Call(NamedTuple):
    """One call of a key, as it was answered.

    `request_id` holds no address, `created_at` is in seconds since 1970, `route` is the template of the path or None if
    there is no such call, `code` is that of the answer, `at_fault` what its refusal names, `batch_id` the batch that it
    was about.
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
    at_fault: str | None = None


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
    at_fault: str | None  # The fields that a refusal names, for people.


requests = Noun(RequestRow, "request", "requests", table="api_requests", schema="Request", without=["at_fault"])

_NAMED_MAX = 5


def at_fault_in_words(keys: Collection[str], known: Collection[str]) -> str | None:
    """Return what a refusal names, such as `amount, recipients.3`; None: nothing.

    What is not `known` may be a caller's own, even an address: it is only counted.
    """
    named = [key for key in keys if all(part.isdecimal() or part in known for part in key.split("."))]
    named, more = named[:_NAMED_MAX], len(keys) - len(named[:_NAMED_MAX])
    rest = f"{more} more" if named else counted(more, "unknown name")
    return ", ".join([*named, rest] if more else named) or None


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
           (organization_id, sandbox, api_key_id, created_at, request_id, method, route, status, code, batch_id, ms,
            at_fault)
    SELECT k.organization_id, k.sandbox, k.id, to_timestamp(c.created_at), c.request_id, c.method, c.route, c.status,
           c.code, c.batch_id, c.ms, c.at_fault
    FROM json_to_recordset(CAST(:calls AS json)) AS c
         (key_hash text, request_id text, created_at double precision, method text, route text, status int, code text,
          batch_id bigint, ms int, at_fault text)
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

WRITE_EVERY_S = 0.25
# About 3 MB. Full only when PostgreSQL has stopped writing.
KEPT_MAX = 5_000
# Statuses of calls that are refused by their key alone, so that a caller can make thousands of them a second.
_AT_THE_DOOR = (401, 429)
_AT_THE_DOOR_MAX = 100

# Why a call is missing in the list.
FULL, NOT_WRITTEN = "full", "not_written"

_log = logs.logger()


class Keeping:
    """The calls of a process that are not written yet.

    A request only appends to memory. What finds no room, or cannot be written, is lost: `count_lost` counts it.
    """

    def __init__(self, count_lost: Callable[[str, int], None]) -> None:
        self._count_lost = count_lost
        self._calls: deque[Call] = deque()
        self._refused: set[tuple[bytes, int]] = set()
        self._writing = threading.Lock()
        self._stopping = threading.Event()
        self._is_failing = False

    def keep(self, call: Call) -> None:
        """Keep a call. Of those that a key is refused by 401 or by 429, only the first until the next writing."""
        if call.status in _AT_THE_DOOR:
            refused = (call.key_hash, call.status)
            if refused in self._refused:
                return
            if len(self._refused) >= _AT_THE_DOOR_MAX:
                self._count_lost(FULL, 1)
                return
            self._refused.add(refused)
        if len(self._calls) >= KEPT_MAX:
            self._count_lost(FULL, 1)
        else:
            self._calls.append(call)

    def start(self) -> None:
        """Start the writing thread. Call it after the fork: threads do not survive it."""
        for reason in (FULL, NOT_WRITTEN):
            self._count_lost(reason, 0)  # Shown as 0 from now on.
        threading.Thread(target=self._keep_writing, name="request_log", daemon=True).start()

    def stop(self) -> None:
        """Write what is kept, and no more after it."""
        self._stopping.set()
        self.write()

    def write(self) -> None:
        """Write what is kept now. No error ends it: PostgreSQL may be away, and comes back."""
        with self._writing:
            self._refused.clear()
            calls = [self._calls.popleft() for _ in range(len(self._calls))]
            if not calls:
                return
            try:
                with transaction() as connection:
                    write(connection, calls)
            except Exception as error:  # noqa: BLE001
                self._count_lost(NOT_WRITTEN, len(calls))
                if not self._is_failing:
                    _log.warning("requests_not_written", calls=len(calls), **logs.kind_of(error))
                self._is_failing = True
            else:
                self._is_failing = False

    def _keep_writing(self) -> None:
        while not self._stopping.wait(WRITE_EVERY_S):
            self.write()
