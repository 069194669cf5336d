"""An organization that is disabled or suspended issues nothing, and can still be read."""

import contextlib
from concurrent.futures import ThreadPoolExecutor

import pytest

from tests.contract.calls import Organization, address, nothing_changes, organization, refusal, success
from tests.deadline import until
from tests.service.up import Service


@pytest.mark.parametrize("verb", ["disable", "suspend"])
def test_it_gets_403_on_both_keys_and_reads_stay_open(globex: Organization, verb: str) -> None:
    [one] = success(globex.live.send({"recipient": address(), "amount": 1}), 201)["transactions"]
    with globex.stopped(verb):
        for key in (globex.live, globex.development):
            with nothing_changes(key):
                refusal(key.send({"recipient": address(), "amount": 1}), 403, "organization")
        assert success(globex.live.get(f"/v1/transactions/{one['id']}"))["email"] == one["email"]
        assert success(globex.live.get("/v1/transactions", limit=1))["transactions"][0]["id"] == one["id"]
        shown = success(globex.live.get("/v1/organization"))
        assert (shown["is_disabled"], shown["is_suspended"]) == (verb == "disable", verb == "suspend")
    success(globex.live.send({"recipient": address(), "amount": 1}), 201)


def test_disabled_wins_and_another_body_is_said_before_either(globex: Organization) -> None:
    body, key = {"recipient": address(), "amount": 1}, address()
    success(globex.live.send(body, Idempotency_Key=key), 201)
    for verbs, code in ((("suspend",), "organization_suspended"), (("suspend", "disable"), "organization_disabled")):
        with contextlib.ExitStack() as stopped:
            for verb in verbs:
                stopped.enter_context(globex.stopped(verb))
            answer = globex.live.send(body)
            refusal(answer, 403, "organization")
            assert answer.json()["additional_data"] == {"code": code}
            refusal(globex.live.send(body | {"amount": 2}, Idempotency_Key=key), 422, "idempotency_key")


def test_a_batch_not_issued_before_a_suspension_is_refused_and_frees_its_key(narrow: Service) -> None:
    made = organization(narrow, 100)
    caller, body = made.live, {"recipient": address(), "amount": 10}
    with ThreadPoolExecutor() as pool:
        with narrow.paused("worker"):
            batch_id = caller.queue(body, Idempotency_Key="before")
            waiting = pool.submit(caller.send, body)
            until(lambda: len(caller.listed("batches")) == 2, every_s=0.25)
            made.change(is_suspended=True)
        refusal(waiting.result(), 403, "organization")
    until(lambda: caller.batch(batch_id)["status"] != "queued", every_s=0.25)
    batch = caller.batch(batch_id)
    assert (batch["status"], batch["issued_at"], batch["transactions"]) == ("refused", None, None)
    assert (batch["refusal"], batch["final"], batch["counts"]) == ("organization_suspended", True, None)
    assert batch_id in [one["batch_id"] for one in caller.listed("batches", status="refused")]
    assert caller.listed("transactions") == []
    assert caller.balance == 100
    made.change(is_suspended=False)
    answer = caller.send(body, Idempotency_Key="before")
    success(answer, 202 if answer.status_code == 202 else 201)  # This service waits for two seconds only.
    assert "Idempotency-Replayed" not in answer.headers
    assert caller.batch(batch_id)["status"] == "refused"
    until(lambda: caller.balance == 90, every_s=0.25)
