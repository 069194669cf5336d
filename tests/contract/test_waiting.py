"""202: asked for, or when the wait runs out; what was accepted is issued once, in the order of acceptance."""

import time

import pytest

from tests.contract.calls import Organization, address, addresses, nothing_changes, organization, refusal, success
from tests.deadline import until
from tests.service.up import Service


def test_respond_async_is_answered_202_at_once_and_the_batch_is_issued(narrow: Service) -> None:
    acme, before = organization(narrow, 100), 100
    with narrow.paused("worker"):
        answer = acme.live.send({"recipient": address(), "amount": 5}, Prefer="return=minimal, Respond-Async")
        batch_id = success(answer, 202)["batch_id"]
        assert answer.json()["data"] == {"batch_id": batch_id, "status": "queued"}
        assert answer.headers["Location"] == f"/v1/batches/{batch_id}"
        assert int(answer.headers["Retry-After"]) >= 1
        batch = success(acme.live.get(answer.headers["Location"]))
        assert (batch["batch_id"], batch["status"], batch["issued_at"]) == (batch_id, "queued", None)
        assert (batch["transactions"], batch["amount"], batch["current_balance"]) == (None, None, None)
        assert acme.live.balance == before
    until(lambda: acme.live.is_issued(batch_id), every_s=0.25)
    batch = acme.live.batch(batch_id)
    assert (batch["amount"], batch["current_balance"], len(batch["transactions"])) == (5, before - 5, 1)


def test_a_caller_waits_as_long_as_it_prefers_and_is_told_so(narrow: Service) -> None:
    acme, body, told = organization(narrow, 1_000), {"recipient": address(), "amount": 5}, {}
    for prefer in ("wait=1", "wait=600", 'foo, wait="1"; x=1', "wait=1, wait=1"):
        answer = acme.live.send(body, Prefer=prefer)
        batch_id = success(answer, 201)["transactions"][0]["id"] // 131_072
        told[prefer] = answer.headers.get("Preference-Applied")
    assert list(told.values()) == ["wait=1", "wait=2", "wait=1", "wait=1"]
    assert "Preference-Applied" not in acme.live.send(body).headers
    with narrow.paused("worker"):
        for prefer, longest_s in (("wait=1", 1), ("wait=0", 0), ("respond-async, wait=10", 0)):
            began = time.monotonic()
            for answer in (
                acme.live.send(body, Prefer=prefer),
                acme.live.call(
                    "POST",
                    "/v1/points/reverse",
                    json={"batch": batch_id, "reason": "x"},
                    headers={"Prefer": prefer},
                ),
            ):
                success(answer, 202)
                assert answer.headers["Preference-Applied"] == prefer.partition(",")[0]
            assert 2 * longest_s <= time.monotonic() - began < 2 * longest_s + 5
    until(lambda: acme.live.listed("batches", status="queued") == [], every_s=0.25)


@pytest.mark.parametrize(
    ("prefer", "status"),
    [
        *((["Respond-Async"], 202), (["respond-async, wait=10"], 202), (["return=minimal,respond-async"], 202)),
        *((["respond-async; foo=bar"], 202), (["return=minimal", "respond-async"], 202)),
        *(([""], 201), (['handling="a, b", respond-async'], 202)),
    ],
    ids=str,
)
def test_a_preference_of_ours_holds_beside_others(acme: Organization, prefer: list[str], status: int) -> None:
    headers = [("Authorization", f"Bearer {acme.live.text}"), *(("Prefer", line) for line in prefer)]
    body = {"recipient": address(), "amount": 5}
    answer = acme.service.request("POST", "/v1/points/send", headers=headers, json=body)
    success(answer, status)
    batch_id = answer.json()["additional_data"]["batch_id"]
    until(lambda: acme.live.is_issued(batch_id))  # Else it falls among what the next test counts.


@pytest.mark.parametrize(
    "prefer",
    [
        *("respond-asynchronously", "no-respond-async", "respond", "return=minimal", "respond-async=1"),
        *("wait=soon", "wait=-1", "wait", "wait=1, wait=0", "respond-async, wait=x", "wait=1.5", "wait=" + "9" * 10),
        # What stands in quotes is one value (RFC 9110, 5.6.4).
        *('handling="a, respond-async, b"', 'handling="a\\", respond-async, b"', 'x="respond-async"'),
    ],
)
def test_a_preference_that_means_nothing_is_a_fault(acme: Organization, prefer: str) -> None:
    with nothing_changes(acme.live):
        refusal(acme.live.send({"recipient": address(), "amount": 5}, Prefer=prefer), 400, "prefer")
        body, headers = {"batch": 1, "reason": "x"}, {"Prefer": prefer}
        refusal(acme.live.call("POST", "/v1/points/reverse", json=body, headers=headers), 400, "prefer")


def test_batches_that_wait_are_issued_in_the_order_of_their_acceptance(narrow: Service) -> None:
    acme, before = organization(narrow, 100), 100
    with narrow.paused("worker"):
        ids = [acme.live.queue({"recipients": addresses(2), "amount": 1}) for _ in range(30)]
    until(lambda: all(acme.live.is_issued(batch_id) for batch_id in reversed(ids)), every_s=0.25)
    balances = [acme.live.batch(batch_id)["current_balance"] for batch_id in ids]
    assert balances == [before - 2 * place for place in range(1, 31)]


def test_a_wait_that_runs_out_is_answered_202_and_the_batch_is_issued_once(narrow: Service) -> None:
    caller = organization(narrow, 100).live
    with narrow.paused("worker"):
        began = time.monotonic()
        answer = caller.send({"recipient": address(), "amount": 5}, Idempotency_Key="late")
        waited_s = time.monotonic() - began
        batch_id = success(answer, 202)["batch_id"]
        assert answer.headers["Location"] == f"/v1/batches/{batch_id}"
        # The setting of this service says 2 s.
        assert 2 <= waited_s < 10
    until(lambda: caller.is_issued(batch_id), every_s=0.25)
    assert caller.balance == 95
    [row] = caller.listed("transactions")
    assert row["organization"]["balance"] == 95
