"""Sending, of one part or of a run of any length, and waiting until what a call has made is done."""

from collections.abc import Callable, Iterable, Iterator, Mapping
from functools import partial
from time import sleep
from typing import Any, TypeVar

from points_client._sync.calling import Caller
from points_client._sync.in_order import each, in_order
from points_client.attempts import Clock, Wait
from points_client.errors import NoAnswer, PointsError
from points_client.outcomes import Outcome, Q, of_send
from points_client.parts import Part, Run
from points_client.requests import AnyItem, body
from points_client.results import Batch, Reversal, Sent, Transaction

F = TypeVar("F", Batch, Reversal)
_LOOK_EVERY_S = 1.0


def until_final(look: Callable[[Clock | None], F], *, wait_s: float) -> F:
    """Look about once a second until it is final or the time is over; return what was seen last."""
    clock = Clock(wait_s)
    seen = look(clock if wait_s else None)
    while not seen.final and clock.has_time_for(_LOOK_EVERY_S):
        sleep(_LOOK_EVERY_S)
        try:
            seen = look(clock)
        except NoAnswer:  # The time is over.
            return seen
    return seen


def posted(caller: Caller, outcome: Outcome[Q]) -> Q:
    """Make a call with a key. If what it makes is queued (202), look at that until it is done or the time is over.

    Raises:
        NoAnswer: it is unknown whether it was accepted.
        PointsError: the call is refused.
    """
    call = outcome.call
    clock = caller.clock(call.wait_s)
    done = caller.tried(call, outcome.read, clock)
    while call.wait_s and done.value.status == "queued":
        seconds = _LOOK_EVERY_S if done.retry_after_s is None else max(0.1, done.retry_after_s)
        if not clock.has_time_for(seconds):
            break
        caller.waited(Wait(seconds=seconds, status=202), call)
        try:
            done = caller.tried(outcome.look(done.value), outcome.seen, clock)
        except NoAnswer:  # The time is over: it is accepted all the same.
            break
        except PointsError:
            # It was refused, cancelled or lost, or this key may not read: the service says which, by the key.
            done = caller.tried(call, outcome.read, clock, may_be_accepted=True)
    return done.value


def send_all(
    caller: Caller,
    items: Iterable[AnyItem | str],
    run: Run,
    *,
    more: Mapping[str, Any],
    in_flight: int,
    wait_s: float,
) -> Iterator[Transaction]:
    """Yield the transactions of a run; `more` is what all parts share.

    Raises:
        ValueError: `in_flight` is less than 1.
    """
    if in_flight < 1:
        raise ValueError("in_flight must be 1 or more.")
    return _transactions(_calls(caller, items, run, body(**more), wait_s), in_flight)


def _transactions(calls: Iterator[Any], in_flight: int) -> Iterator[Transaction]:
    for sent in in_order(calls, at_most=in_flight):
        for transaction in sent.transactions:
            yield transaction


def _calls(
    caller: Caller,
    items: Iterable[AnyItem | str],
    run: Run,
    shared: Mapping[str, Any],
    wait_s: float,
) -> Iterator[Any]:
    """Yield the call of each part. Only one part is read at a time."""
    for item in each(items):
        if part := run.add(item):
            yield partial(_send_part, caller, part, shared, wait_s)
    if part := run.rest():
        yield partial(_send_part, caller, part, shared, wait_s)


def _send_part(caller: Caller, part: Part, shared: Mapping[str, Any], wait_s: float) -> Sent:
    content = {**shared, "items": part.items, "expect": part.expect}
    sent = posted(caller, of_send(content, part.key, wait_s))
    if sent.status != "issued":
        message = f"Batch {sent.batch_id} is accepted, and is {sent.status}, not issued in time."
        raise NoAnswer(message, key=part.key, status=202, request_id=sent.request_id)
    return sent
