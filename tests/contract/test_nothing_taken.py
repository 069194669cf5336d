"""A reversal that takes nothing: of what was cancelled, of more than a balance can hold, and how it is told."""

from datetime import UTC, datetime, timedelta
from typing import Any

from tests.contract.calls import Organization, address, addresses, nothing_changes, organization, refusal, success
from tests.contract.reversing import reverse, send, taken, would_take
from tests.deadline import until
from tests.service.up import Service


def test_a_batch_that_was_cancelled_has_nothing_to_take_back(acme: Organization) -> None:
    tomorrow = (datetime.now(UTC) + timedelta(days=1)).isoformat()
    batch_id = success(acme.live.send({"recipient": address(), "amount": 10, "send_at": tomorrow}), 202)["batch_id"]
    success(acme.live.call("POST", f"/v1/batches/{batch_id}/cancel"))
    with nothing_changes(acme.live):
        answer = reverse(acme.live, {"batch": batch_id}, Idempotency_Key=f"cancelled-{batch_id}")
        sentences = refusal(answer, 409, "batch")["batch"]
        assert answer.json()["additional_data"] == {"code": "batch_not_issued"}
        found = would_take(acme.live, {"batch": batch_id})
        assert (found["validated"], found["recoverable"], [found["error"]]) == (False, 0, sentences)
    assert batch_id not in [one["batch_id"] for one in acme.live.listed("reversals")], "nothing is written"


def test_a_reversal_that_waits_for_a_batch_that_is_cancelled_is_refused(narrow: Service) -> None:
    acme = organization(narrow, 100)
    with narrow.paused("worker"):
        batch_id = acme.live.queue({"recipient": address(), "amount": 10})
        answer = reverse(acme.live, {"batch": batch_id}, Prefer="respond-async")
        location = answer.headers["Location"]
        success(acme.live.call("POST", f"/v1/batches/{batch_id}/cancel"))
    until(lambda: acme.live.get(location).json()["data"]["final"], what="the reversal is over", every_s=0.25)
    over = success(acme.live.get(location))
    assert (over["status"], over["refusal"], over["amount"]) == ("refused", "batch_not_issued", None)
    assert acme.live.balance == 100


def test_verify_counts_what_is_queued(narrow: Service) -> None:
    acme = organization(narrow, 100)
    batch_id, ids = send(acme.live, {"recipients": addresses(2), "amount": 10})
    with narrow.paused("worker"):
        success(reverse(acme.live, {"batch": batch_id, "amount": 4}, Prefer="respond-async"), 202)
        for body, recoverable in (({"batch": batch_id}, 12), ({"transactions": ids[:1], "amount": 5}, 5)):
            found = would_take(acme.live, body)
            assert (found["recoverable"], found["queued"]) == (recoverable, 1)
        found = would_take(acme.live, {"batch": batch_id, "amount": 7})
        assert (found["recoverable"], found["error"]) == (0, "Nobody has 7 points left: the most that one has is 6.")


def test_more_than_64_bits_for_one_user_are_claimed_told_and_never_come_back_at_once(narrow: Service) -> None:
    most, paid = 2**63 - 1, address()
    acme, ids = organization(narrow, most), list[int]()
    for reference in ("one", "two", "three"):  # Each send pays all that there is, and a refill follows.
        items = [
            {"email": paid, "amount": amount, "reference": f"{reference}-{amount}"} for amount in (2**62, 2**62 - 1)
        ]
        ids += send(acme.live, {"items": items})[1]
        acme.refill(most)
    asked = {"transactions": ids}
    assert (would_take(acme.live, asked)["validated"], would_take(acme.live, asked)["recoverable"]) == (False, 0)
    with acme.stopped("disable"):
        found = would_take(acme.live, asked)
        assert (found["validated"], found["recoverable"], found["held"]) == (False, 0, 6)
    assert narrow.register(paid)["balance"] == 3 * most
    until(lambda: _told(acme, "transaction.claimed"), what="the claim is told", every_s=0.25)
    [claim] = _told(acme, "transaction.claimed")
    assert (claim["count"], claim["amount"], claim["transactions"]) == (6, most, ids)
    refusal(reverse(acme.live, asked), 409, "organization")


def _told(acme: Organization, kind: str) -> list[dict[str, Any]]:
    """Return what the log has of one type."""
    return [event["data"] for event in success(acme.live.get("/v1/events", types=kind))["events"]]


def test_a_reversal_that_takes_nothing_is_not_told(acme: Organization) -> None:
    batch_id, _ = send(acme.live, {"recipient": address(), "amount": 10})
    some, none, rest = (taken(acme.live, {"batch": batch_id, "amount": amount}) for amount in (4, 7, 6))
    assert [one["amount"] for one in (some, none, rest)] == [4, 0, 6]

    def told() -> set[int]:
        return {event["reversal"]["reversal_id"] for event in _told(acme, "reversal.issued")}

    until(lambda: rest["reversal_id"] in told(), what="the last is told, and so all before it")
    assert some["reversal_id"] in told()
    assert none["reversal_id"] not in told()
