"""Reversals as a caller asks for them."""

from typing import Any

import httpx

from tests.contract.calls import Key, success
from tests.deadline import until


def reverse(key: Key, body: dict[str, Any], **headers: str) -> httpx.Response:
    """Reverse, with a reason if the body has none; `Idempotency_Key="x"` is the header of that name."""
    dashed = {name.replace("_", "-"): value for name, value in headers.items()}
    return key.call("POST", "/v1/points/reverse", json={"reason": "a mistake"} | body, headers=dashed)


def taken(key: Key, body: dict[str, Any], **headers: str) -> dict[str, Any]:
    """Reverse, and return the result."""
    result: dict[str, Any] = success(reverse(key, body, **headers), 201)
    return result


def would_take(key: Key, body: dict[str, Any]) -> dict[str, Any]:
    """Verify a reversal, and return `data` and `additional_data` in one."""
    answer = key.call("POST", "/v1/points/reverse/verify", json={"reason": "a mistake"} | body)
    return {**success(answer), **answer.json()["additional_data"]}


def send(key: Key, body: dict[str, Any]) -> tuple[int, list[int]]:
    """Send, and return the ids of the batch and of its transactions."""
    answer = key.send(body)
    is_waiting = answer.status_code == 202  # The narrow service waits for two seconds only.
    sent = success(answer, 202 if is_waiting else 201)
    batch_id: int = answer.json()["additional_data"]["batch_id"]
    if is_waiting:
        until(lambda: key.is_issued(batch_id))
        sent = key.batch(batch_id)
    return batch_id, [one["id"] for one in sent["transactions"]]


def outcomes(result: dict[str, Any]) -> list[tuple[int, str | None]]:
    """Return what was taken from each transaction, and the code."""
    return [(one["reversed"], one["code"]) for one in result["transactions"]]
