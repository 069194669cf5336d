"""`GET /v1/events` and `GET /v1/platform/events`: the event log of a mode, and the platform's, oldest first."""

import contextlib
import time
import uuid
from collections.abc import Callable, Iterator
from contextlib import contextmanager, nullcontext
from functools import partial
from typing import Annotated, Any, NamedTuple

import orjson
from pydantic import BaseModel
from redis.exceptions import RedisError

from app.api.auth import caller, platform_caller
from app.api.calls import Answer, call
from app.api.refusals import refusal
from app.api.requests.query import EventsRequest, parse_events_request, query
from app.api.sending.wait_slots import WaitSlots
from app.api_keys import Caller
from app.errors import InvalidRequest, PointsError
from app.event import Event, LogState, PlatformEvent, events, read_on, render_anyway, state_of
from app.events.event_types import PLATFORM, PLATFORM_TYPES
from app.messaging import process_redis
from app.noun_fields import says
from app.platform.keys import PlatformCaller, scopes_of_events
from app.postgres.database import single_statement, transaction
from app.scope import Scope
from app.values.key_bounds import READ

_Event = events.model
_LastSequence = Annotated[
    int,
    says(
        "Every event up to this sequence was looked at: use it as `after` of the next call. Without `types` it is the"
        " sequence of the last event here; in a log without events it is 0.",
        4,
        ge=0,
    ),
]


class EventList(BaseModel):
    """The next events, oldest first."""

    events: list[_Event] = says("The events after `after`.")  # type: ignore[valid-type]
    last_sequence: _LastSequence


class PlatformEventList(BaseModel):
    """The next events, oldest first."""

    events: list[PlatformEvent] = says("The events after `after`.")  # type: ignore[valid-type]
    last_sequence: _LastSequence


class EventsExpired(PointsError):
    """Events after `after` are no longer kept. `additional_data.oldest` is the sequence of the oldest that is."""

    status = 410
    field = "after"

    def __init__(self, dropped_to: int) -> None:
        super().__init__(
            f"The events up to {dropped_to} are no longer kept; the oldest kept event has the sequence"
            f" {dropped_to + 1}. Go on with after={dropped_to}, and read what you missed from the lists."
        )
        self.beside = {"oldest": dropped_to + 1}


def _beyond(last_sequence: int) -> InvalidRequest:
    sentence = (
        f"The log ends at the sequence {last_sequence}. If you have seen a higher one, it was from another database, or"
        " from this one before it was restored."
    )
    return InvalidRequest({"after": [sentence]})


_BAD_QUERY = refusal(
    "BadEventsQuery",
    "The query has faults; or `after` is beyond the end of the log.",
    _beyond(3),
    examples=["beyond_the_log"],
)

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


class _Log(NamedTuple):
    """A log, and who reads it.

    Args:
        scope: whose log it is; of `PLATFORM` of `app.events.event_types`: the platform's.
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


def _next_events(log: _Log, asked: EventsRequest) -> dict[str, Any]:
    """Return the next events. With `wait`, return once there is one, or with none when the time is over.

    Raises:
        EventsExpired: events after `after` are no longer kept.
        InvalidRequest: `after` is beyond the end of the log.
    """
    found = _read(log, asked, asked.after)
    if not found.events and found.is_end and asked.wait_s:
        place = _place_of(log.key, wait_s=asked.wait_s, at_most=WAITING_OF_A_KEY_MAX)
        with _slots.slot(log.key) as is_free, place if is_free else nullcontext(False) as may_wait:
            if may_wait:
                found = _wait(log, asked, found)
    rendered = [orjson.Fragment(render_anyway(event)) for event in found.events]
    return {"events": rendered, "last_sequence": found.last_sequence}


def _read(log: _Log, asked: EventsRequest, after: int | None) -> _Found:
    """Read the next events. It reads the log's end first, and leaves events after that end to the next call."""
    with transaction() as connection:
        state = state_of(connection, log.scope)
        if after is None:
            after = state.dropped_to
        events, up_to = read_on(
            connection,
            log.scope,
            after=after,
            types=asked.types,
            limit=asked.limit,
            looked_at_max=LOOKED_AT_MAX,
            last_sequence=state.last_sequence,
        )
        # Read again: events that were dropped in the meantime may be missing from the page.
        _refuse_outside(after, state_of(connection, log.scope))
    return _Found(events, up_to, up_to == state.last_sequence)


def _refuse_outside(after: int, log: LogState) -> None:
    if after > log.last_sequence:
        raise _beyond(log.last_sequence)
    if after < log.dropped_to:
        raise EventsExpired(log.dropped_to)


def _wait(log: _Log, asked: EventsRequest, found: _Found) -> _Found:
    """Poll until there is an event or the time is over, without holding a connection in between."""
    deadline = time.monotonic() + asked.wait_s
    while not found.events and (left_s := deadline - time.monotonic()) > 0:
        time.sleep(min(POLL_EVERY_S, left_s))
        with single_statement() as connection:
            state = state_of(connection, log.scope)
        if state.last_sequence > found.last_sequence:
            log.authorize()
            found = _read(log, asked, found.last_sequence)
    return found


@call(
    "GET /v1/events",
    "What happened, in order",
    group="Events",
    scopes=(READ,),
    query="events",
    answers=Answer(about="The events.", data=EventList, examples={"events": {}}),
    refuses=[_BAD_QUERY, EventsExpired(4)],
)
def list_events(who: Caller) -> dict[str, Any]:
    """The event log of the organization in the key's mode, oldest first. Each event has a `sequence`: 1, 2, 3 … without
    a gap, so a gap proves a loss. An effect always has a higher sequence than its cause. An event is in the log within
    a second of its commit. Store `last_sequence` together with what you did, and give it as `after` next time: then
    each event takes effect once. With `types`, a call looks at up to 10,000 events. It may return none although
    matching events follow: go on until `last_sequence` stays the same. Events that concern the organization as a whole
    are in the live log.
    """
    log = _Log(who.scope, key=str(who.api_key_id), authorize=caller)
    return _next_events(log, parse_events_request(query()))


@call(
    "GET /v1/platform/events",
    "What happened to users and organizations, in order",
    group="Platform",
    scopes=(),  # They follow from the types of events.
    query="events of the platform",
    answers=Answer(about="The events.", data=PlatformEventList, examples={"platform_events": {}}),
    refuses=[_BAD_QUERY, EventsExpired(4)],
)
def list_platform_events(who: PlatformCaller) -> dict[str, Any]:
    """The event log of the platform, by the rules of `GET /v1/events`: a `sequence` without a gap, oldest first, within
    a second of the commit. It tells of registrations, of changed and erased users, of new organizations, their refills
    and their suspensions. Events about users need the scope `users:read`, those about organizations
    `organizations:read`; so without `types` the call needs both.
    """
    asked = parse_events_request(query(), PLATFORM_TYPES)
    scopes = scopes_of_events(asked.types)
    who.require(*scopes)
    key = f"platform-{who.platform_key_id}"
    log = _Log(Scope(PLATFORM, sandbox=False), key=key, authorize=partial(platform_caller, *scopes))
    return _next_events(log, asked)
