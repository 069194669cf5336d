"""Sending one batch, and a run of any length."""

from collections.abc import AsyncIterator, Iterable, Mapping
from functools import partial
from typing import Any

from points_client._async.calling import AsyncCaller, result
from points_client._async.in_order import in_order
from points_client.comparing import is_about
from points_client.errors import NoAnswer
from points_client.parts import Part, checked_run, parts
from points_client.requests import AnyItem
from points_client.results import Sent, Transaction


async def send(caller: AsyncCaller, body: Mapping[str, Any], key: str, wait_s: float) -> Sent:
    """Send a batch under its key.

    Raises:
        NoAnswer: there was no clear answer, or one about other recipients than those sent.
        PointsError: it is refused.
    """
    answer = await caller.call("POST", "/v1/points/send", body=body, key=key, wait_s=wait_s)
    nothing = {"transactions": (), "amount": None, "current_balance": None}
    about = {"status": "issued", "replayed": answer.replayed, "idempotency_key": key, **answer.additional}
    sent = result(Sent, {**nothing, **about, **answer.data}, key=key)
    if sent.status == "issued" and not is_about(sent.transactions, body):
        raise NoAnswer("The answer is about other recipients than those sent. Is the URL right?", key=key)
    return sent


def send_all(
    caller: AsyncCaller,
    items: Iterable[AnyItem | str],
    *,
    run: str,
    more: Mapping[str, Any],
    part_size: int,
    in_flight: int,
    wait_s: float,
) -> AsyncIterator[Transaction]:
    """Yield the transactions of a run; `more` is what all parts share.

    Raises:
        ValueError: `run` is not a valid name, or `part_size` or `in_flight` is less than 1.
    """
    if part_size < 1 or in_flight < 1:
        raise ValueError("part_size and in_flight must be 1 or more.")
    shared = {name: value for name, value in more.items() if value is not None}
    split = parts(items, run=checked_run(run), amount=more["amount"], size=part_size)
    calls = (partial(_send_part, caller, part, shared, wait_s) for part in split)
    return _transactions(calls, in_flight)


async def _transactions(calls: Iterable[Any], in_flight: int) -> AsyncIterator[Transaction]:
    async for sent in in_order(calls, at_most=in_flight):
        for transaction in sent.transactions:
            yield transaction


async def _send_part(caller: AsyncCaller, part: Part, shared: Mapping[str, Any], wait_s: float) -> Sent:
    body = {**shared, "items": part.items, "expect": part.expect}
    sent = await send(caller, body, part.key, wait_s)
    if sent.status != "issued":
        raise NoAnswer(f"Batch {sent.batch_id} is accepted, and was not issued in time.", key=part.key, status=202)
    return sent
