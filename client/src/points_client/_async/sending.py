"""Sending one batch, and a run of any length."""

from collections.abc import AsyncIterable, AsyncIterator, Callable, Iterable, Mapping
from functools import partial
from typing import Any

from points_client._async.calling import AsyncCaller
from points_client._async.in_order import each, in_order
from points_client._async.waiting import posted
from points_client.answers import Answer, Unlike
from points_client.comparing import is_about
from points_client.errors import NoAnswer
from points_client.parts import Part, Run
from points_client.reading import read
from points_client.requests import AnyItem, Call, path
from points_client.results import Sent, Transaction


async def send(caller: AsyncCaller, body: Mapping[str, Any], key: str, wait_s: float) -> Sent:
    """Send a batch under its key.

    Raises:
        NoAnswer: there was no clear answer, or one about other recipients than those sent.
        PointsError: it is refused.
    """
    call = Call(method="POST", path="/v1/points/send", body=body, key=key, wait_s=wait_s)

    def look(sent: Sent) -> tuple[Call, Callable[[Answer], Sent]]:
        return Call(method="GET", path=path("batches", sent.batch_id)), partial(_seen, body, key)

    return await posted(caller, call, partial(_sent, body, key), look)


def _sent(body: Mapping[str, Any], key: str, answer: Answer) -> Sent:
    nothing = {"transactions": (), "amount": None, "current_balance": None}
    about = {"status": "issued", "replayed": answer.replayed, "idempotency_key": key}
    sent = read(Sent, {**nothing, **about, **answer.additional, **answer.data})
    if sent.status == "issued" and not is_about(sent.transactions, body):
        raise Unlike("it is about other recipients than those sent")
    return sent


def _seen(body: Mapping[str, Any], key: str, answer: Answer) -> Sent:
    """Return a batch as the outcome of its send. Neither queued nor issued, it is not looked at further here."""
    batch = answer.data
    if batch["status"] not in ("queued", "issued") or batch["idempotency_key"] != key:
        raise Unlike("the batch is another, or not issued")
    names = ("batch_id", "status", "transactions", "amount", "current_balance")
    queued = {"transactions": ()} if batch["status"] == "queued" else {}
    return _sent(body, key, Answer(status=200, data={**{name: batch[name] for name in names}, **queued}, additional={}))


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
    sent = await send(caller, body, part.key, wait_s)
    if sent.status != "issued":
        message = f"Batch {sent.batch_id} is accepted, and is {sent.status}, not issued in time."
        raise NoAnswer(message, key=part.key, status=202)
    return sent
