"""A second pair of eyes beside limits and ends of keys, days of the statement, a suspension and an erased user."""

import re
from datetime import UTC, date, datetime, timedelta
from typing import Any

import httpx
import pytest

from tests.contract.calls import (
    HELD,
    PAID,
    Key,
    Organization,
    address,
    addresses,
    flags,
    nothing_changes,
    organization,
    refusal,
    success,
)
from tests.contract.platform import Platform, platform
from tests.contract.reversing import taken
from tests.deadline import until
from tests.service.up import Service


@pytest.fixture(scope="module")
def ours(service: Service) -> Platform:
    return platform(service)


@pytest.fixture
def careful(service: Service) -> Organization:
    """Make an organization that approves what is of more than 50 points, of keys too."""
    made = organization(service, 1_000, sandbox_balance=1_000)
    made.change(approval_above=50, approval_of="all")
    return made


def _awaiting(key: Key, body: dict[str, Any]) -> int:
    data = success(key.send(body), 202)
    assert data["status"] == "awaiting_approval"
    return int(data["batch_id"])


def _approve(key: Key, batch_id: int) -> httpx.Response:
    return key.call("POST", f"/v1/batches/{batch_id}/approve")


def _reject(key: Key, batch_id: int) -> httpx.Response:
    return key.call("POST", f"/v1/batches/{batch_id}/reject", json={"reason": "The wrong list"})


def _cancel(key: Key, batch_id: int) -> httpx.Response:
    return key.call("POST", f"/v1/batches/{batch_id}/cancel")


def _approved(key: Key, batch_id: int) -> dict[str, Any]:
    """Approve a batch, and return it once it is issued."""
    success(_approve(key, batch_id))
    until(lambda: key.is_issued(batch_id), every_s=0.1)
    return key.batch(batch_id)


def _noon(key: Key, in_days: int) -> date:
    """Set the clock of the sandbox to a noon to come, so that no day ends meanwhile."""
    moment = (datetime.now(UTC) + timedelta(days=in_days)).replace(hour=12, minute=0, second=0, microsecond=0)
    success(key.call("POST", "/v1/sandbox/clock", json={"now": moment.isoformat()}))
    return moment.date()


def _used(key: Key) -> int:
    """Return what a key with a daily limit has used today, as verify tells it."""
    verdict = success(key.verify({"recipient": address(), "amount": 10**9}))
    found = re.search("it has used ([0-9]+)", verdict["error"])
    assert found is not None, verdict["error"]
    return int(found[1])


def test_what_awaits_an_approval_counts_on_the_day_of_its_key_until_it_is_called_off_once(
    service: Service, careful: Organization
) -> None:
    key, answers = (
        careful.new_key(sandbox=True, daily_limit=500),
        careful.new_key(sandbox=True, scopes=["approve", "read"]),
    )
    spends = careful.new_key(sandbox=True)
    _noon(key, 2)
    body = {"recipients": addresses(2), "amount": 50}
    batches = [_awaiting(key, body) for _ in range(4)]
    assert _used(key) == 400
    over = {"recipient": address(), "amount": 101}
    with nothing_changes(answers):
        [sentence] = refusal(key.send(over), 403, "amount")["amount"]
        assert "it has used 400, and this batch is for 101" in sentence
        assert success(key.verify(over)) == {"validated": False, "error": sentence}
    for _ in range(2):  # It is given back once.
        success(_reject(answers, batches[0]))
        assert _used(key) == 300
    for _ in range(2):
        success(_cancel(key, batches[1]))
        assert _used(key) == 200
    for late in (_approve(answers, batches[0]), _reject(answers, batches[1]), _cancel(key, batches[0])):
        refusal(late, 409, "batch")
    assert _approved(answers, batches[2])["amount"] == 100
    assert _used(key) == 200
    # What is approved on another day counts on the day when it was sent, less what the balance does not pay of it then.
    whole, partly = _awaiting(key, body), _awaiting(key, body | {"amount": 100})
    assert _used(key) == 500
    _noon(key, 3)
    assert _approved(answers, whole)["amount"] == 100
    _approved(answers, _awaiting(spends, {"recipients": addresses(14), "amount": 50}))
    assert _approved(answers, partly)["counts"]["unpaid"] == 1
    assert _used(key) == 0
    # And so does what nobody answers.
    _noon(key, 10)
    until(lambda: answers.batch(batches[3])["status"] == "rejected", within_s=60, every_s=0.2)
    assert _used(key) == 0


def test_only_a_usable_key_with_the_scope_that_has_not_sent_the_batch_answers_it(careful: Organization) -> None:
    ends = careful.new_key(expires_at=(datetime.now(UTC) + timedelta(seconds=5)).isoformat())
    sender, sender_id = careful.new_key_with_id(scopes=["send", "read", "approve"], batch_limit=100)
    gone, gone_id = careful.new_key_with_id()
    answers, sends = careful.new_key(scopes=["approve"]), careful.new_key(scopes=["send", "read"])
    over = {"recipient": address(), "amount": 101}
    with nothing_changes(sender):
        [sentence] = refusal(sender.send(over), 403, "amount")["amount"]
        assert success(sender.verify(over)) == {"validated": False, "error": sentence}
    first, second = (_awaiting(sender, {"recipient": address(), "amount": 100}) for _ in range(2))
    careful.revoke(gone_id)
    with nothing_changes(sender):
        for answer in (_approve, _reject):
            for key, field, code in ((sender, "batch", "own_batch"), (sends, "authorization", "insufficient_scope")):
                refused = answer(key, first)
                refusal(refused, 403, field)
                assert refused.json()["additional_data"]["code"] == code
            refusal(answer(gone, first), 401, "authorization")
    until(lambda: _approve(ends, 1).status_code == 401, every_s=0.2)
    # Who has sent it may be gone: it is issued as it was sent.
    careful.revoke(sender_id)
    refusal(_approve(sender, first), 401, "authorization")
    assert success(_reject(answers, second))["status"] == "rejected"
    success(_approve(answers, first))
    until(lambda: sends.is_issued(first), every_s=0.1)


def test_a_suspended_organization_approves_nothing_and_loses_nothing_that_awaits_it(careful: Organization) -> None:
    key, other = careful.new_key(), careful.new_key()
    tomorrow = (datetime.now(UTC) + timedelta(days=1)).isoformat()
    body = {"recipient": address(), "amount": 51}
    before, waits, rejected, cancelled = (_awaiting(key, body) for _ in range(4))
    later = _awaiting(key, body | {"send_at": tomorrow})
    _approved(other, before)
    for flag, code in (("is_suspended", "organization_suspended"), ("is_disabled", "organization_disabled")):
        careful.change(**{flag: True})
        with nothing_changes(key):
            for batch_id in (waits, later):
                refused = _approve(other, batch_id)
                refusal(refused, 403, "organization")
                assert refused.json()["additional_data"]["code"] == code
                assert key.batch(batch_id)["status"] == "awaiting_approval"
            assert success(_approve(other, before))["status"] == "issued", "it was approved before"
    success(_reject(other, rejected))
    success(_cancel(key, cancelled))
    for flag in ("is_disabled", "is_suspended"):
        careful.change(**{flag: False})
    assert _approved(other, waits)["amount"] == 51
    assert success(_approve(other, later))["status"] == "scheduled"
    expected = [
        *["batch.awaiting_approval"] * 5,
        *("batch.approved", "batch.issued"),
        *("organization.suspended", "organization.disabled", "batch.rejected", "batch.cancelled"),
        *("organization.enabled", "organization.resumed"),
        *("batch.approved", "batch.issued", "batch.approved", "batch.scheduled"),
    ]

    def told() -> list[str]:
        events = success(key.get("/v1/events", types="batch.*,organization.*"))["events"]
        return [event["type"] for event in events]

    until(lambda: len(told()) >= len(expected), every_s=0.1)
    assert told() == expected


def _days(key: Key, first: date, last: date) -> list[dict[str, int]]:
    """Return what is not 0 of the sums of each day."""
    days = success(key.get("/v1/statement", **{"from": str(first), "to": str(last)}))["days"]
    names = ("debited", "reversed", "returned", "batches", "transactions", "unpaid")
    return [{name: day[name] for name in names if day[name]} for day in days]


def test_a_batch_counts_on_the_day_of_its_issue_whoever_was_erased_of_it(ours: Platform, careful: Organization) -> None:
    key, other = careful.new_key(sandbox=True), careful.new_key(sandbox=True)
    email = address()
    user_id = ours.registered(email)["id"]
    first = _noon(key, 2)
    awaiting = _awaiting(key, {"recipients": [email, address()], "amount": 30})
    rejected = _awaiting(key, {"recipient": email, "amount": 70})
    success(key.send({"recipient": email, "amount": 50}), 201)
    _noon(key, 3)
    success(_reject(other, rejected))
    _approved(other, awaiting)
    last = _noon(key, 4)
    expected = [
        {"debited": 50, "batches": 1, "transactions": 1},
        {"debited": 60, "batches": 1, "transactions": 2},
        {},
    ]
    assert _days(key, first, last) == expected
    success(ours.call("POST", f"/v1/platform/users/{user_id}/erase"))
    assert _days(key, first, last) == expected
    back = taken(key, {"batch": awaiting})
    assert (back["amount"], back["transactions"][0]["email"]) == (60, f"erased-{user_id}")
    assert _days(key, first, last) == [*expected[:2], {"reversed": 60}]


def test_what_waits_for_an_erased_user_can_still_be_answered_and_tells_no_address(
    service: Service, ours: Platform, careful: Organization
) -> None:
    key, other = careful.new_key(), careful.new_key()
    email, beside = address(), address()
    user_id = ours.registered(email)["id"]
    body = {"items": [{"email": email, "amount": 40}, {"email": beside, "amount": 20}]}
    tomorrow = (datetime.now(UTC) + timedelta(days=1)).isoformat()
    awaiting = success(key.send(body, Idempotency_Key="of-erased"), 202)["batch_id"]
    rejected, cancelled, later = (_awaiting(key, body | more) for more in ({}, {}, {"send_at": tomorrow}))
    scheduled = success(key.send({"recipient": email, "amount": 5, "send_at": tomorrow}), 202)["batch_id"]
    success(ours.call("POST", f"/v1/platform/users/{user_id}/erase"))
    assert success(_reject(other, rejected))["final"]
    assert success(_cancel(key, cancelled))["final"]
    assert success(_approve(other, later))["status"] == "scheduled"
    moved = (datetime.now(UTC) + timedelta(days=2)).isoformat()
    for batch_id in (scheduled, later):
        success(key.call("PATCH", f"/v1/batches/{batch_id}", json={"send_at": moved}))
    issued = _approved(other, awaiting)
    assert [one["email"] for one in issued["transactions"]] == [f"erased-{user_id}", beside]
    assert flags(issued["transactions"]) == [HELD, HELD]
    replay = success(key.send(body, Idempotency_Key="of-erased"), 201)
    assert [one["email"] for one in replay["transactions"]] == [f"erased-{user_id}", beside]
    for batch_id in (awaiting, rejected, cancelled, later, scheduled):
        assert email not in key.get(f"/v1/batches/{batch_id}").text
    for name in ("transactions", "batches"):
        assert key.listed(name, email=email) == []
    # The address is anybody's, and what was sent before is not theirs.
    assert ours.registered(email)["balance"] == 0
    [now] = success(key.send({"recipient": email, "amount": 7}), 201)["transactions"]
    assert flags([now]) == [PAID]
