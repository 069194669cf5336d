"""A second pair of eyes: a send above a limit is issued once another than its sender has approved it."""

import uuid
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest

from tests.contract.calls import (
    TIMESTAMP,
    Key,
    Organization,
    address,
    addresses,
    nothing_changes,
    organization,
    refusal,
    success,
)
from tests.contract.platform import platform
from tests.deadline import until
from tests.service.up import Service


@pytest.fixture(scope="module")
def careful(service: Service) -> Organization:
    """Make an organization that approves what is of more than 100 points, of keys too."""
    made = organization(service, 1_000, sandbox_balance=1_000)
    made.change(approval_above=100, approval_of="all")
    return made


@pytest.fixture(scope="module")
def approver(careful: Organization) -> Key:
    return careful.new_key()


def _awaiting(key: Key, amount: int = 101, **more: Any) -> int:
    """Send more than may go alone, and return the id of the batch."""
    data = success(key.send({"recipient": address(), "amount": amount} | more), 202)
    assert data["status"] == "awaiting_approval"
    return int(data["batch_id"])


def _events(key: Key, batch_id: int) -> list[dict[str, Any]]:
    events = key.get("/v1/events", types="batch.*", limit=1_000).json()["data"]["events"]
    return [event for event in events if event["data"]["batch"]["batch_id"] == batch_id]


def _told(key: Key, batch_id: int) -> list[tuple[str, str]]:
    """Return the events of a batch, with its status in each."""
    return [(event["type"], event["data"]["batch"]["status"]) for event in _events(key, batch_id)]


def _approvals(key: Key, batch_id: int) -> list[tuple[bool, int | None] | None]:
    """Return what each event of a batch tells of an approval: whether it came at that moment, and the key."""
    told = [(event["timestamp"], event["data"]["batch"]["approval"]) for event in _events(key, batch_id)]
    return [approval and (approval["at"] == at, approval["api_key_id"]) for at, approval in told]


def _is(key: Key, batch_id: int, status: str) -> bool:
    return bool(key.batch(batch_id)["status"] == status)


def test_a_send_above_the_limit_waits_moves_nothing_and_is_issued_once_another_key_has_approved_it(
    service: Service, careful: Organization, approver: Key
) -> None:
    sender, body = careful.live, {"recipients": addresses(3), "amount": 34, "label": "L"}
    assert success(sender.send(body | {"amount": 33}), 201)["amount"] == 99
    assert success(sender.send({"recipient": address(), "amount": 100}), 201)["amount"] == 100
    before, key = sender.balance, uuid.uuid4().hex
    answer = sender.send(body, Idempotency_Key=key, Prefer="wait=20")
    batch_id = success(answer, 202)["batch_id"]
    assert answer.json()["data"] == {"batch_id": batch_id, "status": "awaiting_approval"}
    assert answer.headers["Location"] == f"/v1/batches/{batch_id}"
    assert int(answer.headers["Retry-After"]) > 0
    again = sender.send(body, Idempotency_Key=key)
    assert success(again, 202) == answer.json()["data"]
    refusal(sender.send(body | {"label": "M"}, Idempotency_Key=key), 422, "idempotency_key")
    shown = sender.batch(batch_id)
    assert (shown["final"], shown["approval"], shown["issued_at"], shown["transactions"]) == (False, None, None, None)
    assert [one["batch_id"] for one in sender.listed("batches", status="awaiting_approval")] == [batch_id]
    assert sender.get("/v1/organization").json()["additional_data"]["scheduled"]["batches"] == 0
    with nothing_changes(sender):
        for call in (sender.approve, sender.reject):
            assert "sent" in refusal(call(batch_id), 403, "batch")["batch"][0]
        refusal(careful.development.approve(batch_id), 404, "batch")
        refusal(organization(service, 1).live.approve(batch_id), 404, "batch")
        refusal(approver.call("POST", "/v1/points/reverse", json={"batch": batch_id, "reason": "x"}), 409, "batch")
    assert sender.balance == before
    approved = success(approver.approve(batch_id))
    assert approved["approval"].keys() == {"by", "api_key_id", "at", "reason"}
    assert (approved["approval"]["by"], approved["approval"]["reason"]) == (None, None)
    assert approved["approval"]["api_key_id"] != approved["api_key_id"]
    assert TIMESTAMP.match(approved["approval"]["at"])
    until(lambda: sender.is_issued(batch_id))
    assert sender.balance == before - 102
    replay = sender.send(body, Idempotency_Key=key)
    assert success(replay, 201)["amount"] == 102
    assert replay.headers["Idempotency-Replayed"] == "true"
    repeated = success(approver.approve(batch_id))
    assert (repeated["status"], repeated["approval"]) == ("issued", approved["approval"])
    assert next(one for one in sender.listed("batches") if one["batch_id"] == batch_id)["approval"] is not None
    assert "approved" in refusal(approver.reject(batch_id), 409, "batch")["batch"][0]
    until(lambda: len(_told(sender, batch_id)) == 3)
    assert _told(sender, batch_id) == [
        ("batch.awaiting_approval", "awaiting_approval"),
        ("batch.approved", "queued"),
        ("batch.issued", "issued"),
    ]


def test_what_is_rejected_is_final_and_has_moved_nothing(careful: Organization, approver: Key) -> None:
    sender, before, key = careful.live, careful.live.balance, uuid.uuid4().hex
    body = {"recipient": address(), "amount": 101}
    batch_id = success(sender.send(body, Idempotency_Key=key), 202)["batch_id"]
    for bad in ({}, {"reason": ""}, {"reason": "  "}, {"reason": 5}, {"reason": "x" * 256}, {"reason": None}):
        refusal(approver.reject(batch_id, bad), 400, "reason")
    refusal(approver.reject(batch_id, {"reason": "x", "why": "y"}), 400, "why")
    refusal(approver.call("POST", f"/v1/batches/{batch_id}/approve", json={"reason": "x"}), 400, "reason")
    rejected = success(approver.reject(batch_id, {"reason": "The wrong list"}))
    assert (rejected["status"], rejected["final"], rejected["transactions"]) == ("rejected", True, None)
    assert rejected["approval"]["reason"] == "The wrong list"
    assert success(approver.reject(batch_id, {"reason": "Another"})) == rejected
    for call in (approver.approve(batch_id), sender.cancel(batch_id)):
        refusal(call, 409, "batch")
    refusal(sender.send(body, Idempotency_Key=key), 409, "batch")
    refusal(approver.call("POST", "/v1/points/reverse", json={"batch": batch_id, "reason": "x"}), 409, "batch")
    assert sender.balance == before
    until(lambda: len(_told(sender, batch_id)) == 2)
    assert _told(sender, batch_id)[1] == ("batch.rejected", "rejected")


def test_what_awaits_an_approval_is_cancelled_like_what_is_queued(careful: Organization, approver: Key) -> None:
    batch_id = _awaiting(careful.live)
    assert success(careful.live.cancel(batch_id))["status"] == "cancelled"
    for call in (approver.approve(batch_id), approver.reject(batch_id)):
        assert "cancelled" in refusal(call, 409, "batch")["batch"][0]
    plain = careful.live.queue({"recipient": address(), "amount": 1})
    refusal(approver.approve(plain), 409, "batch")


def test_approved_before_its_time_it_is_scheduled_and_can_then_be_moved(careful: Organization, approver: Key) -> None:
    send_at = datetime.now(UTC) + timedelta(days=1)
    batch_id = _awaiting(careful.live, send_at=send_at.isoformat())
    later = {"send_at": (send_at + timedelta(days=1)).isoformat()}
    refusal(careful.live.move(batch_id, later), 409, "batch")
    assert success(approver.approve(batch_id))["status"] == "scheduled"
    assert careful.live.get("/v1/organization").json()["additional_data"]["scheduled"]["batches"] == 1
    success(careful.live.move(batch_id, later))
    assert success(careful.live.cancel(batch_id))["approval"] is not None


def test_an_approval_is_good_for_seven_days_and_what_is_moved_beyond_awaits_another(service: Service) -> None:
    careful = organization(service, sandbox_balance=1_000)
    careful.change(approval_above=100, approval_of="all")
    sender, approver = careful.new_key(sandbox=True), careful.new_key(sandbox=True)
    other, other_id = careful.new_key_with_id(sandbox=True)

    def in_days(days: float) -> dict[str, Any]:
        return {"send_at": (noon + timedelta(days=days)).isoformat()}

    noon = sender.go_to_noon(20)
    batch_id = _awaiting(sender, **in_days(1))
    success(approver.approve(batch_id))
    assert success(sender.move(batch_id, in_days(6.9)))["status"] == "scheduled"
    moved = success(sender.move(batch_id, in_days(7.1)))
    assert (moved["status"], moved["approval"], moved["final"]) == ("awaiting_approval", None, False)
    assert moved["send_at"].startswith(in_days(7.1)["send_at"][:19])
    until(lambda: len(_told(sender, batch_id)) == 5)
    forgotten = [None, (True, None), None, None, None]
    assert _approvals(sender, batch_id) == forgotten
    refusal(sender.move(batch_id, in_days(1)), 409, "batch")
    refusal(sender.approve(batch_id), 403, "batch")
    noon = sender.go_to_noon(26)  # Six days later: it was sent more than seven days ago, but awaits since six.
    assert _is(sender, batch_id, "awaiting_approval")
    assert success(other.approve(batch_id))["status"] == "scheduled"
    sender.go_to_noon(28)
    until(lambda: sender.is_issued(batch_id), within_s=60)
    told = ["awaiting_approval", "approved", "scheduled", "scheduled"]
    until(lambda: len(_told(sender, batch_id)) == 8)
    assert [kind.removeprefix("batch.") for kind, _ in _told(sender, batch_id)] == [*told, *told[:3], "issued"]
    anew = [(True, other_id), (True, other_id), (False, other_id)]
    assert _approvals(sender, batch_id) == [*forgotten, *anew]
    free = success(sender.send({"recipient": address(), "amount": 1, "send_at": in_days(3)["send_at"]}), 202)
    assert success(sender.move(free["batch_id"], in_days(90)))["status"] == "scheduled", "it was never approved"


def test_who_approves_sees_every_recipient_before_the_issue_and_what_awaits_and_nothing_else(
    service: Service,
) -> None:
    careful = organization(service, 1_000)
    careful.change(approval_above=100, approval_of="all")
    approves, sender = careful.new_key(scopes=["approve"]), careful.new_key(scopes=["send"])
    items = [{"email": address(), "amount": 50 + place, "reference": f"r{place}"} for place in range(5)]
    items[3]["label"] = "Own"
    shown = [{"label": "L"} | item for item in items]
    body = {"items": items, "label": "L"}
    verdict = sender.verify(body).json()["additional_data"]
    assert verdict["awaits_approval"] is True
    assert sender.verify({"recipient": address(), "amount": 100}).json()["additional_data"]["awaits_approval"] is False
    batch_id = success(sender.send(body), 202)["batch_id"]
    plain = success(careful.live.send({"recipients": [one["email"] for one in items], "amount": 1}), 201)[
        "transactions"
    ]
    others = careful.live.listed("batches", status="issued")[0]["batch_id"]
    path = f"batches/{batch_id}/recipients"
    for limit in (1, 2, 5, 100):
        assert approves.listed(path, limit=limit) == shown
    assert approves.batch(batch_id)["status"] == "awaiting_approval"
    assert [one["batch_id"] for one in approves.listed("batches", status="awaiting_approval")] == [batch_id]
    assert {one["status"] for one in approves.listed("batches")} == {"awaiting_approval"}
    assert approves.listed("batches", status="issued") == []
    for hidden in (f"batches/{others}", f"batches/{others}/recipients"):
        refusal(approves.get(f"/v1/{hidden}"), 404, "batch")
    refusal(sender.get(f"/v1/{path}"), 403, "authorization")
    for stranger in (careful.development, organization(service, 1).live):
        refusal(stranger.get(f"/v1/{path}"), 404, "batch")
    refusal(approves.get(f"/v1/{path}", limit=0), 400, "limit")
    cursor = success(approves.get(f"/v1/{path}", limit=1))["next_cursor"]
    refusal(careful.live.get(f"/v1/batches/{others}/recipients", cursor=cursor), 400, "cursor")
    refusal(approves.get(f"/v1/{path}", email="x@example.com"), 400, "email")
    success(approves.approve(batch_id))
    for answered in (batch_id, others):
        refusal(careful.new_key(scopes=["approve"]).approve(answered), 409, "batch")
    rejected = success(sender.send(body), 202)["batch_id"]
    success(careful.live.reject(rejected))
    refusal(approves.reject(rejected), 409, "batch")
    until(lambda: approves.batch(batch_id)["final"], every_s=0.1)
    for key in (approves, careful.live):
        assert key.listed(path, limit=3) == shown
    assert careful.live.listed(f"batches/{others}/recipients") == [
        {"email": one["email"], "amount": 1, "label": None, "reference": None} for one in plain
    ]


def test_what_nobody_answers_for_seven_days_is_rejected_by_itself(careful: Organization) -> None:
    sandbox = careful.development
    answered, waiting = _awaiting(sandbox), _awaiting(sandbox)
    success(careful.new_key(sandbox=True).reject(answered))
    now = datetime.now(UTC)
    success(sandbox.set_clock(now + timedelta(days=6.9)))
    assert _is(sandbox, waiting, "awaiting_approval")
    success(sandbox.set_clock(now + timedelta(days=7.1)))
    other = careful.new_key(sandbox=True)
    for answer in (other.approve(waiting), other.reject(waiting)):
        refusal(answer, 409, "batch")
    until(lambda: _is(sandbox, waiting, "rejected"), within_s=60)
    shown = sandbox.batch(waiting)
    assert (shown["final"], shown["approval"]["by"], shown["approval"]["api_key_id"]) == (True, None, None)
    assert "7 days" in shown["approval"]["reason"]
    assert sandbox.balance == 1_000


def test_only_the_sends_of_members_await_it_unless_it_is_for_all_and_a_limit_can_be_unset(service: Service) -> None:
    made, ours = organization(service, 1_000), platform(service)
    path = f"/v1/platform/organizations/{made.id}"
    assert success(ours.get(path)) | {"approval_above": None, "approval_of": "console"} == success(ours.get(path))
    assert success(ours.call("PATCH", path, json={"approval_above": 0}))["approval_above"] == 0
    success(made.live.send({"recipient": address(), "amount": 1}), 201)
    assert success(ours.call("PATCH", path, json={"approval_of": "all"}))["approval_of"] == "all"
    _awaiting(made.live, 1)
    shown = service.json("organizations", "approval", str(made.id), "--above", "1")
    assert (shown["approval_above"], shown["approval_of"]) == (1, "all")
    success(made.live.send({"recipient": address(), "amount": 1}), 201)
    assert service.json("organizations", "approval", str(made.id), "--above", "none")["approval_above"] is None
    success(made.live.send({"recipient": address(), "amount": 500}), 201)
    bad = {"approval_above": -1, "approval_of": "nobody"}
    refusal(ours.call("PATCH", path, json=bad), 400, *bad)
    refusal(ours.call("PATCH", path, json={"approval_of": None}), 400, "approval_of")
    service.command("organizations", "approval", str(made.id), status=2)
    service.command("organizations", "approval", "999999999", "--above", "1", status=1)
