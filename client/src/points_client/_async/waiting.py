"""Waiting until something is final, and until what a call has made is done."""

from asyncio import sleep
from collections.abc import Awaitable, Callable
from typing import Protocol, TypeVar

from points_client._async.calling import AsyncCaller
from points_client.attempts import Clock, Wait
from points_client.errors import NoAnswer, PointsError
from points_client.outcomes import Outcome, Q

_LOOK_EVERY_S = 1.0


class MayBeFinal(Protocol):
    """A batch or a reversal."""

    @property
    def final(self) -> bool: ...


T = TypeVar("T", bound=MayBeFinal)


async def until_final(look: Callable[[Clock | None], Awaitable[T]], *, wait_s: float) -> T:
    """Look about once a second until it is final or the time is over; return what was seen last."""
    clock = Clock(wait_s)
    seen = await look(clock if wait_s else None)
    while not seen.final and clock.has_time_for(_LOOK_EVERY_S):
        await sleep(_LOOK_EVERY_S)
        try:
            seen = await look(clock)
        except NoAnswer:  # The time is over.
            return seen
    return seen


async def posted(caller: AsyncCaller, outcome: Outcome[Q]) -> Q:
    """Make a call with a key. If what it makes is queued (202), look at that until it is done or the time is over.

    Raises:
        NoAnswer: it is unknown whether it was accepted.
        PointsError: the call is refused.
    """
    call = outcome.call
    clock = caller.clock(call.wait_s)
    done = await caller.tried(call, outcome.read, clock)
    while call.wait_s and done.value.status == "queued":
        seconds = _LOOK_EVERY_S if done.retry_after_s is None else max(0.1, done.retry_after_s)
        if not clock.has_time_for(seconds):
            break
        await caller.waited(Wait(seconds=seconds, status=202), call)
        try:
            done = await caller.tried(outcome.look(done.value), outcome.seen, clock)
        except NoAnswer:  # The time is over: it is accepted all the same.
            break
        except PointsError:
            # It was refused, cancelled or lost, or this key may not read: the service says which, by the key.
            done = await caller.tried(call, outcome.read, clock, may_be_accepted=True)
    return done.value
