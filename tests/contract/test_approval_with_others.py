"""A second pair of eyes beside limits and ends of keys, days of the statement, a suspension and an erased user."""

from datetime import UTC, datetime, timedelta
from typing import Any

import pytest

from tests.contract.calls import (
    Key,
    Organization,
    address,
    addresses,
    nothing_changes,
    organization,
    refusal,
    success,
)
from tests.deadline import until
from tests.service.up import Service


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


def _approved(key: Key, batch_id: int) -> dict[str, Any]:
    """Approve a batch, and return it once it is issued."""
    success(key.approve(batch_id))
    until(lambda: key.is_issued(batch_id), every_s=0.1)
    return key.batch(batch_id)


def test_what_awaits_an_approval_counts_on_the_day_of_its_key_until_it_is_called_off_once(
    service: Service, careful: Organization
) -> None:
    key, answers = (
        careful.new_key(sandbox=True, daily_limit=500),
        careful.new_key(sandbox=True, scopes=["approve", "read"]),
    )
    spends = careful.new_key(sandbox=True)
    key.go_to_noon(2)
    body = {"recipients": addresses(2), "amount": 50}
    batches = [_awaiting(key, body) for _ in range(4)]
    assert key.used_today == 400
    over = {"recipient": address(), "amount": 101}
    with nothing_changes(answers):
        [sentence] = refusal(key.send(over), 403, "amount")["amount"]
        assert "it has used 400, and this batch is for 101" in sentence
        assert success(key.verify(over)) == {"validated": False, "error": sentence}
    for _ in range(2):  # It is given back once.
        success(answers.reject(batches[0]))
        assert key.used_today == 300
    for _ in range(2):
        success(key.cancel(batches[1]))
        assert key.used_today == 200
    for late in (answers.approve(batches[0]), answers.reject(batches[1]), key.cancel(batches[0])):
        refusal(late, 409, "batch")
    assert _approved(answers, batches[2])["amount"] == 100
    assert key.used_today == 200
    # What is approved on another day counts on the day when it was sent, less what the balance does not pay of it then.
    whole, partly = _awaiting(key, body), _awaiting(key, body | {"amount": 100})
    assert key.used_today == 500
    key.go_to_noon(3)
    assert _approved(answers, whole)["amount"] == 100
    _approved(answers, _awaiting(spends, {"recipients": addresses(14), "amount": 50}))
    assert _approved(answers, partly)["counts"]["unpaid"] == 1
    assert key.used_today == 0
    # And so does what nobody answers.
    key.go_to_noon(10)
    until(lambda: answers.batch(batches[3])["status"] == "rejected", within_s=60, every_s=0.2)
    assert key.used_today == 0


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
        for answer in (Key.approve, Key.reject):
            for key, field, code in ((sender, "batch", "own_batch"), (sends, "authorization", "insufficient_scope")):
                refused = answer(key, first)
                refusal(refused, 403, field)
                assert refused.json()["additional_data"]["code"] == code
            refusal(answer(gone, first), 401, "authorization")
    until(lambda: ends.approve(1).status_code == 401, every_s=0.2)
    # Who has sent it may be gone: it is issued as it was sent.
    careful.revoke(sender_id)
    refusal(sender.approve(first), 401, "authorization")
    assert success(answers.reject(second))["status"] == "rejected"
    success(answers.approve(first))
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
                refused = other.approve(batch_id)
                refusal(refused, 403, "organization")
                assert refused.json()["additional_data"]["code"] == code
                assert key.batch(batch_id)["status"] == "awaiting_approval"
            assert success(other.approve(before))["status"] == "issued", "it was approved before"
    success(other.reject(rejected))
    success(key.cancel(cancelled))
    for flag in ("is_disabled", "is_suspended"):
        careful.change(**{flag: False})
    assert _approved(other, waits)["amount"] == 51
    assert success(other.approve(later))["status"] == "scheduled"
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
