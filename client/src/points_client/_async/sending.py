"""Sending, of one part or of a run of any length, and waiting until what a call has made is done."""

from asyncio import sleep
from collections.abc import AsyncIterable, AsyncIterator, Awaitable, Callable, Iterable, Mapping
from functools import partial
from typing import Any, TypeVar

from points_client._async.calling import AsyncCaller
from points_client._async.in_order import each, in_order
from points_client.attempts import Clock, Wait
from points_client.errors import NoAnswer, PointsError
from points_client.outcomes import Outcome, Q, of_send
from points_client.parts import Part, Run
from points_client.requests import AnyItem, body
from points_client.results import Batch, Reversal, Sent, Transaction

F = TypeVar("F", Batch, Reversal)
_LOOK_EVERY_S = 1.0


async def until_final(look: Callable[[Clock | None], Awaitable[F]], *, wait_s: float) -> F:
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


def send_all(
    caller: AsyncCaller,
    items: Iterable[AnyItem | str] | AsyncIterable[AnyItem | str],
    run: Run,
    *,
    more: Mapping[str, Any],
    in_flight: int,
    wait_s: float,
) -> AsyncIterator[Transaction]:
    """Yield the transactions of a run; `more` is what all parts share.

    Raises:
        ValueError: `in_flight` is less than 1.
    """
    if in_flight < 1:
        raise ValueError("in_flight must be 1 or more.")
    return _transactions(_calls(caller, items, run, body(**more), wait_s), in_flight)


async def _transactions(calls: AsyncIterator[Any], in_flight: int) -> AsyncIterator[Transaction]:
    async for sent in in_order(calls, at_most=in_flight):
        for transaction in sent.transactions:
            yield transaction


async def _calls(
    caller: AsyncCaller,
    items: Iterable[AnyItem | str] | AsyncIterable[AnyItem | str],
    run: Run,
    shared: Mapping[str, Any],
    wait_s: float,
) -> AsyncIterator[Any]:
    """Yield the call of each part. Only one part is read at a time."""
    async for item in each(items):
        if part := run.add(item):
            yield partial(_send_part, caller, part, shared, wait_s)
    if part := run.rest():
        yield partial(_send_part, caller, part, shared, wait_s)


async def _send_part(caller: AsyncCaller, part: Part, shared: Mapping[str, Any], wait_s: float) -> Sent:
    content = {**shared, "items": part.items, "expect": part.expect}
    sent = await posted(caller, of_send(content, part.key, wait_s))
    if sent.status != "issued":
        message = f"Batch {sent.batch_id} is accepted, and is {sent.status}, not issued in time."
        raise NoAnswer(message, key=part.key, status=202, request_id=sent.request_id)
    return sent
