"""Reversals as a caller asks for them."""

from typing import Any

import httpx

from tests.contract.calls import Key, success


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
    ids = [one["id"] for one in success(answer, 201)["transactions"]]
    return answer.json()["additional_data"]["batch_id"], ids


def outcomes(result: dict[str, Any]) -> list[tuple[int, str | None]]:
    """Return what was taken from each transaction, and the code."""
    return [(one["reversed"], one["code"]) for one in result["transactions"]]
