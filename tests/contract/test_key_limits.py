"""Keys with limits: no batch, and no day in UTC, is for more points than its key may send, however they come."""

from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from datetime import timedelta
from typing import Any

import httpx
import pytest

from tests.contract.calls import Key, Organization, address, addresses, nothing_changes, organization, refusal, success
from tests.deadline import until
from tests.service.up import Service

_CALLERS, _SENDS = 32, 200


@pytest.fixture(scope="module")
def made(service: Service) -> Organization:
    return organization(service, 10_000, sandbox_balance=1_000)


def _over(answer: httpx.Response) -> str:
    """Require the refusal of a limit, and return its sentence."""
    [sentence] = refusal(answer, 403, "amount")["amount"]
    assert answer.json()["additional_data"]["code"] == "key_limit"
    return sentence


def test_a_batch_over_the_limit_of_a_batch_is_refused_with_limit_and_asked(made: Organization) -> None:
    key = made.new_key(batch_limit=30)
    success(key.send({"recipients": addresses(3), "amount": 10}), 201)
    for body in (
        {"recipients": addresses(4), "amount": 10},
        {"items": [{"email": address(), "amount": amount} for amount in (30, 10)]},
    ):
        with nothing_changes(made.live):
            sentence = _over(key.send(body))
        assert sentence == "The key may send at most 30 points in one batch, but this one is for 40."
        answer = key.verify(body)
        assert success(answer) == {"validated": False, "error": sentence}
        assert answer.json()["additional_data"]["code"] == "key_limit"
    assert success(key.verify({"recipient": address(), "amount": 30}))["validated"] is True
    assert success(made.live.verify({"recipient": address(), "amount": 40}))["validated"] is True


def test_a_day_counts_what_was_paid_and_a_replay_takes_nothing(made: Organization) -> None:
    key = made.new_key(daily_limit=100, sandbox=True)
    noon = key.go_to_noon(2)
    today = noon.date()
    body = {"recipients": addresses(2), "amount": 40}
    sent = success(key.send(body, Idempotency_Key="first"), 201)
    with nothing_changes(made.development):
        sentence = _over(key.send({"recipient": address(), "amount": 21}))
        assert sentence == (
            f"The key may send at most 100 points a day (UTC): on {today} it has used 80, and this batch is for 21."
        )
        assert success(key.verify({"recipient": address(), "amount": 21})) == {"validated": False, "error": sentence}
        assert success(key.send(body, Idempotency_Key="first"), 201) == sent
        refusal(key.send({"recipient": address(), "amount": 21}, Idempotency_Key="first"), 422, "idempotency_key")
    success(key.send({"recipient": address(), "amount": 20}), 201)
    assert success(key.send(body, Idempotency_Key="first"), 201) == sent
    assert key.used_today == 100
    events: list[Any] = []

    def is_told() -> bool:
        events[:] = success(made.development.get("/v1/events", types="key.limit_reached"))["events"]
        return bool(events)

    _over(key.send({"recipient": address(), "amount": 1}))
    until(is_told, every_s=0.1)
    [event] = events
    key_id = next(one["id"] for one in _listed(made) if key.text.startswith(one["start"]))
    told = {"id": key_id, "sandbox": True, "daily_limit": 100}
    assert event["data"] == {"key": told, "day": today.isoformat(), "used": 80, "asked": 21}
    # Of the next day, the limit is whole again; a scheduled batch counts on the day when it is accepted.
    success(key.set_clock(noon + timedelta(days=1)))
    later = {"recipient": address(), "amount": 70, "send_at": (noon + timedelta(days=3)).isoformat()}
    success(key.send(later), 202)
    assert key.used_today == 70
    success(key.send({"recipient": address(), "amount": 30}), 201)
    _over(key.send({"recipient": address(), "amount": 1}))
    until(lambda: is_told() and len(events) == 2, every_s=0.1)


def _listed(made: Organization) -> list[dict[str, Any]]:
    keys: list[dict[str, Any]] = made.service.json("keys", "list", str(made.id))
    return keys


def test_what_was_cancelled_refused_or_not_paid_is_given_back(service: Service) -> None:
    made = organization(service, 0, sandbox_balance=100)
    key = made.new_key(daily_limit=500, sandbox=True)
    noon = key.go_to_noon(2)
    partly = success(key.send({"recipients": addresses(4), "amount": 30}), 201)
    assert (partly["amount"], key.used_today) == (90, 90)
    unpaid = success(key.send({"recipients": addresses(4), "amount": 30, "atomic": True}), 201)
    assert (unpaid["amount"], key.used_today) == (0, 90)
    scheduled = [
        success(key.send({"recipient": address(), "amount": 200, "send_at": at.isoformat()}), 202)["batch_id"]
        for at in (noon + timedelta(hours=1), noon + timedelta(hours=2))
    ]
    assert key.used_today == 490
    _over(key.send({"recipient": address(), "amount": 11}))
    for _ in range(2):  # It is given back once.
        success(key.call("POST", f"/v1/batches/{scheduled[1]}/cancel"))
        assert key.used_today == 290
    with made.stopped():
        success(key.set_clock(noon + timedelta(minutes=90)))
        until(lambda: key.batch(scheduled[0])["status"] == "refused", every_s=0.1)
    assert key.used_today == 90
    success(key.send({"recipient": address(), "amount": 10}), 201)
    _over(key.send({"recipient": address(), "amount": 401}))


def _send_all(key: Key, send: Callable[[Key, int], int]) -> list[int]:
    with ThreadPoolExecutor(_CALLERS) as pool:
        return list(pool.map(lambda number: send(key, number), range(_SENDS)))


def test_sends_that_come_at_once_never_pass_the_limit_and_use_all_of_it(service: Service) -> None:
    made = organization(service, 10**6)
    key = made.new_key(daily_limit=1000)

    def send(key: Key, number: int) -> int:
        answer = key.send({"recipient": address(), "amount": 7}, Idempotency_Key=f"at-once-{number}")
        if answer.status_code == 403:
            _over(answer)
        return answer.status_code

    statuses = _send_all(key, send)
    issued = sum(statuses.count(status) for status in (201, 202))
    assert (issued, statuses.count(403)) == (1_000 // 7, _SENDS - 1_000 // 7)
    until(lambda: all(row["status"] == "issued" for row in made.live.listed("batches")), every_s=0.1)
    assert key.used_today == 10**6 - made.live.balance == 1_000 // 7 * 7
