"""Taking points back."""

from collections.abc import Callable, Mapping
from functools import partial
from typing import Any

from points_client._async.calling import AsyncCaller
from points_client._async.waiting import posted
from points_client.answers import Answer, Unlike
from points_client.comparing import is_of
from points_client.reading import read
from points_client.requests import Call, path
from points_client.reversal_results import Reversed


async def reverse(caller: AsyncCaller, body: Mapping[str, Any], key: str, wait_s: float) -> Reversed:
    """Take points back under a key.

    Raises:
        NoAnswer: there was no clear answer, or one about other transactions than those sent.
        PointsError: it is refused.
    """
    call = Call(method="POST", path="/v1/points/reverse", body=body, key=key, wait_s=wait_s)

    def look(found: Reversed) -> tuple[Call, Callable[[Answer], Reversed]]:
        return Call(method="GET", path=path("reversals", found.reversal_id)), partial(_seen, body, key)

    return await posted(caller, call, partial(_reversed, body, key), look)


def _reversed(body: Mapping[str, Any], key: str, answer: Answer) -> Reversed:
    nothing = {"transactions": (), "amount": None, "current_balance": None}
    about = {"status": "done", "replayed": answer.replayed, "idempotency_key": key}
    found = read(Reversed, {**nothing, **about, **answer.data})
    if found.status == "done" and not is_of(found.transactions, body):
        raise Unlike("it is about other transactions than those sent")
    return found


def _seen(body: Mapping[str, Any], key: str, answer: Answer) -> Reversed:
    """Return a reversal as the outcome of its call."""
    seen = answer.data
    if seen["status"] not in ("queued", "done") or seen["idempotency_key"] != key:
        raise Unlike("the reversal is another, or not done")
    names = ("reversal_id", "status", "transactions", "amount", "current_balance")
    queued = {"transactions": ()} if seen["status"] == "queued" else {}
    found = {**{name: seen[name] for name in names}, **queued}
    return _reversed(body, key, Answer(status=200, data=found, additional={}))
