"""Sending a run of any length."""

from collections.abc import AsyncIterable, AsyncIterator, Iterable, Mapping
from functools import partial
from typing import Any

from points_client._async.calling import AsyncCaller
from points_client._async.in_order import each, in_order
from points_client._async.waiting import posted
from points_client.errors import NoAnswer
from points_client.outcomes import of_send
from points_client.parts import Part, Run
from points_client.requests import AnyItem
from points_client.results import Sent, Transaction


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
    shared = {name: value for name, value in more.items() if value is not None}
    return _transactions(_calls(caller, items, run, shared, wait_s), in_flight)


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
    body = {**shared, "items": part.items, "expect": part.expect}
    sent = await posted(caller, of_send(body, part.key, wait_s))
    if sent.status != "issued":
        message = f"Batch {sent.batch_id} is accepted, and is {sent.status}, not issued in time."
        raise NoAnswer(message, key=part.key, status=202)
    return sent
