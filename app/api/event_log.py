"""The answer of the calls that read a log: its next events, oldest first, at once or when there is one."""

import contextlib
import time
import uuid
from collections.abc import Callable, Iterator
from contextlib import contextmanager, nullcontext
from typing import Any, NamedTuple

import orjson
from flask import Response
from redis.exceptions import RedisError

from app import event
from app.api.answers import envelope
from app.api.requests.query import EventsRequest
from app.api.sending.wait_slots import WaitSlots
from app.errors import InvalidRequest
from app.event import Event, render_anyway
from app.messaging import process_redis
from app.postgres.database import single_statement, transaction
from app.scope import Scope

# Calls of a key that wait are counted in Redis over all web processes. Without Redis nothing is limited.
_WAITING = "points:waiting:{}"
# A call whose process died counts for this much longer than it would have waited.
_GRACE_S = 5


@contextmanager
def _place_of(key: str, *, wait_s: float, at_most: int) -> Iterator[bool]:
    """Hold one of a key's places for the block; yield False if all are taken."""
    name, call, now = _WAITING.format(key), uuid.uuid4().hex, time.time()
    try:
        with process_redis.unless_away() as redis, redis.pipeline(transaction=True) as pipeline:
            pipeline.zremrangebyscore(name, "-inf", now)
            pipeline.zadd(name, {call: now + wait_s + _GRACE_S})
            pipeline.zcard(name)
            pipeline.expire(name, int(wait_s) + 2 * _GRACE_S)
            _, _, taken, _ = pipeline.execute()
    except RedisError:
        yield True
        return
    try:
        yield taken <= at_most
    finally:
        with contextlib.suppress(RedisError), process_redis.unless_away() as redis:
            redis.zrem(name, call)


# Each waiting call holds a thread.
WAITING_MAX = 8
WAITING_OF_A_KEY_MAX = 2
POLL_EVERY_S = 0.25
# A call looks at no more events than this, even if few are of the types that it asks for.
LOOKED_AT_MAX = 10_000

_slots = WaitSlots(at_most=WAITING_MAX, of_one_at_most=WAITING_OF_A_KEY_MAX)


class Log(NamedTuple):
    """A log, and who reads it.

    Args:
        scope: whose log it is; of `PLATFORM` of `app.events.log`: the platform's.
        key: which key reads it; no key of another kind has this name.
        authorize: finds the caller again, and refuses one that may not read on.
    """

    scope: Scope
    key: str
    authorize: Callable[[], object]


class _Found(NamedTuple):
    """Some events, the last sequence that was looked at, and whether the log ends there."""

    events: list[Event]
    last_sequence: int
    is_end: bool


def answer(log: Log, asked: EventsRequest) -> Response:
    """Answer 200 with the next events. With `wait`, answer once there is one, or with none when the time is over.

    Raises:
        InvalidRequest: events after `after` are no longer kept, or `after` is beyond the end of the log.
    """
    found = _read(log, asked, asked.after)
    if not found.events and found.is_end and asked.wait_s:
        place = _place_of(log.key, wait_s=asked.wait_s, at_most=WAITING_OF_A_KEY_MAX)
        with _slots.slot(log.key) as is_free, place if is_free else nullcontext(False) as may_wait:
            if may_wait:
                found = _wait(log, asked, found)
    data: dict[str, Any] = {
        "events": [orjson.Fragment(render_anyway(event)) for event in found.events],
        "last_sequence": found.last_sequence,
    }
    return envelope.success(data)


def _read(log: Log, asked: EventsRequest, after: int | None) -> _Found:
    """Read the next events. It reads the log's end first, and leaves events after that end to the next call."""
    with transaction() as connection:
        state = event.state_of(connection, log.scope)
        if after is None:
            after = state.dropped_to
        up_to = min(state.last_sequence, after + LOOKED_AT_MAX)
        events = event.page(
            connection,
            log.scope,
            after=after,
            types=asked.types,
            limit=asked.limit,
            up_to=up_to,
        )
        # Read again: events that were dropped in the meantime may be missing from the page.
        _refuse_outside(after, event.state_of(connection, log.scope))
    if len(events) == asked.limit:
        up_to = events[-1].sequence
    return _Found(events, up_to, up_to == state.last_sequence)


def _refuse_outside(after: int, log: event.LogState) -> None:
    if after < log.dropped_to:
        sentence = (
            f"The events up to {log.dropped_to} are no longer kept; the oldest kept event has the sequence"
            f" {log.dropped_to + 1}. Go on with after={log.dropped_to}, and read what you missed from the lists."
        )
    elif after > log.last_sequence:
        sentence = (
            f"The log ends at the sequence {log.last_sequence}. If you have seen a higher one, it was from another"
            " database, or from this one before it was restored."
        )
    else:
        return
    raise InvalidRequest({"after": [sentence]})


def _wait(log: Log, asked: EventsRequest, found: _Found) -> _Found:
    """Poll until there is an event or the time is over, without holding a connection in between."""
    deadline = time.monotonic() + asked.wait_s
    while not found.events and (left_s := deadline - time.monotonic()) > 0:
        time.sleep(min(POLL_EVERY_S, left_s))
        with single_statement() as connection:
            state = event.state_of(connection, log.scope)
        if state.last_sequence > found.last_sequence:
            log.authorize()
            found = _read(log, asked, found.last_sequence)
    return found
