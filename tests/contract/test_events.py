"""The event log: what happens is told once, in order, without a gap, and never otherwise than it was."""

import json
import signal
import subprocess
import time
from concurrent.futures import ThreadPoolExecutor
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest
from standardwebhooks import Webhook

from tests.contract.calls import TIMESTAMP, Key, Organization, address, addresses, organization, refusal, success
from tests.contract.reversing import reverse
from tests.deadline import until
from tests.receiver import Receiver, status
from tests.service.up import Service

_SECRET = "whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw"


def _log(key: Key, **query: Any) -> dict[str, Any]:
    data: dict[str, Any] = success(key.get("/v1/events", **query))
    return data


def _types(key: Key, **query: Any) -> list[str]:
    return [event["type"] for event in _log(key, limit=1_000, **query)["events"]]


def _end(key: Key) -> int:
    """Return the end of the log once nothing more comes, for a second, by itself."""
    end = int(_log(key, limit=1_000)["last_sequence"])
    while found := _log(key, after=end, wait=1)["events"]:
        end = found[-1]["sequence"]
    return end


@pytest.fixture(scope="module")
def teller(service: Service) -> Organization:
    """Make an organization whose log holds what these tests do, and nothing else."""
    return organization(service, 10_000)


def test_each_change_is_told_soon_in_order_and_under_its_type(service: Service, teller: Organization) -> None:
    key, held = teller.live, address()
    since = _end(key)
    batch_id = success(key.send({"recipients": [held, address()], "amount": 10, "label": "May"}), 201)["transactions"]
    batch_id = key.listed("batches", limit=1)[0]["batch_id"]
    later = {"recipient": held, "amount": 1, "send_at": (datetime.now(UTC) + timedelta(days=1)).isoformat()}
    cancelled = success(key.send(later), 202)["batch_id"]
    assert key.call("POST", f"/v1/batches/{cancelled}/cancel").status_code == 200
    user = service.register(held)
    success(reverse(key, {"batch": batch_id, "reason": "wrong"}), 201)
    teller.refill(7)
    with teller.stopped("suspend"), teller.stopped("disable"):
        pass
    _, another = teller.new_key_with_id(sandbox=True)
    teller.revoke(another)
    expected = [
        *("batch.issued", "batch.scheduled", "batch.cancelled", "transaction.claimed", "reversal.issued"),
        *("balance.refilled", "organization.suspended", "organization.disabled", "organization.enabled"),
        *("organization.resumed", "key.created", "key.revoked"),
    ]
    until(lambda: len(_types(key, after=since)) == len(expected))
    events = _log(key, after=since)["events"]
    assert [event["type"] for event in events] == expected
    assert [event["sequence"] for event in events] == list(range(since + 1, since + 1 + len(events)))
    assert all(TIMESTAMP.match(event["timestamp"]) for event in events)
    assert all(event["organization"] == {"id": teller.id} and event["sandbox"] is False for event in events)
    assert len({event["id"] for event in events}) == len(events)
    by_type = {event["type"]: event["data"] for event in events}
    listed = {batch["batch_id"]: batch for batch in key.listed("batches")}
    shown = by_type["batch.issued"]["batch"]
    assert shown.keys() == listed[batch_id].keys()
    assert shown | {"counts": None} == listed[batch_id] | {"counts": None}
    counts = {"recipients": 2, "debited": 2, "credited": 0, "held": 2, "unpaid": 0, "reversed": 0}
    assert shown["counts"] == counts, "as it was then"
    assert by_type["batch.cancelled"]["batch"] == listed[cancelled]
    assert by_type["transaction.claimed"] == {
        "user": {"id": user["id"], "first_name": "Ada", "last_name": "Lovelace"},
        "transactions": [key.batch(batch_id)["transactions"][0]["id"]],
        "count": 1,
        "amount": 10,
        "more": None,
    }
    assert by_type["reversal.issued"]["reversal"] == key.listed("reversals")[0]
    assert by_type["key.revoked"] == {"key": {"id": another, "sandbox": True}}
    assert (by_type["balance.refilled"]["amount"], by_type["balance.refilled"]["reference"]) == (7, None)
    assert by_type["organization.suspended"]["organization"]["is_suspended"] is True
    assert "@" not in key.get("/v1/events", limit=1_000).text


def test_the_sandbox_has_a_log_of_its_own(teller: Organization) -> None:
    since = _end(teller.development)
    live = _end(teller.live)
    success(teller.development.send({"recipient": address(), "amount": 5}), 201)
    success(teller.development.call("POST", "/v1/sandbox/reset"))
    until(lambda: len(_types(teller.development, after=since)) == 2)
    events = _log(teller.development, after=since)["events"]
    assert [event["type"] for event in events] == ["batch.issued", "balance.refilled"]
    assert all(event["sandbox"] is True for event in events)
    assert events[1]["data"]["organization"]["balance"] == 1_000_000
    assert _end(teller.live) == live


def test_an_event_is_the_same_bytes_each_time_it_is_told(service: Service, teller: Organization) -> None:
    key, held = teller.live, address()
    since = _end(key)
    success(key.send({"recipient": held, "amount": 3, "metadata": {"z": "1", "a": "ü"}}, Idempotency_Key=held), 201)
    until(lambda: bool(_types(key, after=since)))
    [told] = _raw(key, since)
    service.register(held)
    success(reverse(key, {"batch": json.loads(told)["data"]["batch"]["batch_id"], "reason": "x"}), 201)
    assert _raw(key, since)[0] == told
    assert json.loads(told)["data"]["batch"]["metadata"] == {"z": "1", "a": "ü"}


def _raw(key: Key, after: int) -> list[str]:
    """Return the events as they are written in the answer."""
    answer = key.get("/v1/events", after=after, limit=1)
    start, end = answer.text.index("[") + 1, answer.text.rindex("]")
    return [answer.text[start:end]]


def test_pages_of_any_size_are_the_whole_log_and_types_choose_from_it(teller: Organization) -> None:
    key = teller.live
    for _ in range(5):
        success(key.send({"recipients": addresses(2), "amount": 1}), 201)
    end = _end(key)
    whole = _log(key, limit=1_000)
    assert [event["sequence"] for event in whole["events"]] == list(range(1, end + 1))
    assert whole["last_sequence"] == end
    paged: list[dict[str, Any]] = []
    after = 0
    while after < end:
        page = _log(key, after=after, limit=2)
        assert page["last_sequence"] == page["events"][-1]["sequence"]
        paged, after = paged + page["events"], page["last_sequence"]
    assert paged == whole["events"]
    for types, kinds in (
        ("batch.*", ("batch.",)),
        ("batch.issued,key.*", ("batch.issued", "key.")),
        ("*", ("",)),
        ("*.issued", ("batch.issued", "reversal.issued")),
    ):
        chosen = _log(key, types=types, limit=1_000)
        assert chosen["events"] == [event for event in whole["events"] if event["type"].startswith(kinds)]
        assert chosen["last_sequence"] == end, "the log was looked through to its end"
    assert _log(key, types="webhook.disabled") == {"events": [], "last_sequence": end}


def test_a_query_with_faults_is_refused_and_every_fault_is_named(teller: Organization) -> None:
    key = teller.live
    errors = refusal(
        key.get("/v1/events?after=-1&types=batch.lost&limit=0&wait=26&cursor=x"),
        400,
        *("after", "types", "limit", "wait", "cursor"),
    )
    assert "batch.issued" in errors["types"][0]
    for name, seen in (("after", "-1"), ("types", "batch.lost"), ("limit", "0"), ("wait", "26")):
        assert f"is “{seen}”" in errors[name][0]
    beyond = _end(key) + 1
    assert str(beyond - 1) in refusal(key.get(f"/v1/events?after={beyond}"), 400, "after")["after"][0]


def test_a_waiting_call_is_answered_by_an_event_or_empty_at_the_end_of_its_time(teller: Organization) -> None:
    key = teller.live
    end = _end(key)
    began = time.monotonic()
    assert _log(key, after=end, wait=2) == {"events": [], "last_sequence": end}
    assert 2 <= time.monotonic() - began < 10
    with ThreadPoolExecutor(1) as pool:
        waiting = pool.submit(_log, key, after=end, wait=25, types="batch.issued")
        success(key.send({"recipient": address(), "amount": 1}), 201)
        sent = time.monotonic()
        [event] = waiting.result(30)["events"]
    assert time.monotonic() - sent < 10
    assert event["sequence"] == end + 1


def test_of_a_key_two_calls_wait_and_a_third_is_answered_at_once(service: Service, teller: Organization) -> None:
    key = teller.new_key()
    end = _end(key)
    with ThreadPoolExecutor(8) as pool:
        began = time.monotonic()
        calls = [pool.submit(lambda: (_log(key, after=end, wait=6), time.monotonic() - began)[1]) for _ in range(8)]
        took = [call.result(30) for call in calls]
    assert sum(seconds >= 5 for seconds in took) == 2, took
    assert _log(key, after=end, wait=1) == {"events": [], "last_sequence": end}
    assert time.monotonic() - began > 6.9  # The places are free again.


def test_a_key_that_is_revoked_while_it_waits_gets_nothing_more(service: Service, teller: Organization) -> None:
    key, key_id = teller.new_key_with_id()
    end = _end(key)
    with ThreadPoolExecutor(1) as pool:
        waiting = pool.submit(key.get, "/v1/events", after=end, wait=25)
        teller.revoke(key_id)
        assert waiting.result(30).status_code == 401


def test_a_low_balance_is_told_when_it_is_crossed(service: Service) -> None:
    teller = organization(service, 100)
    shown = service.json("organizations", "set", str(teller.id), "--low-balance", "50")
    assert shown["low_balance"] == 50
    success(teller.live.send({"recipient": address(), "amount": 60}), 201)
    until(lambda: "balance.low" in _types(teller.live))
    assert _types(teller.live)[-2:] == ["batch.issued", "balance.low"]
    for _ in range(2):  # The balance is below it already: the next debit tells that, once.
        teller.change(low_balance=100)
        success(teller.live.send({"recipient": address(), "amount": 1}), 201)
    until(lambda: _types(teller.live).count("batch.issued") == 3)
    assert _types(teller.live)[-3:] == ["batch.issued", "balance.low", "batch.issued"]
    assert service.json("organizations", "set", str(teller.id), "--low-balance", "none")["low_balance"] is None
    service.command("organizations", "set", str(teller.id), status=2)


def test_what_a_user_claimed_beyond_a_hundred_is_found_at_the_path_of_the_event(service: Service) -> None:
    teller, held = organization(service, 10_000), address()
    items = [{"email": held, "amount": 1, "reference": f"r{place}"} for place in range(103)]
    success(teller.live.send({"items": items}), 201)
    service.register(held)
    until(lambda: "transaction.claimed" in _types(teller.live))
    data = _log(teller.live, types="transaction.claimed")["events"][0]["data"]
    assert (len(data["transactions"]), data["count"], data["amount"]) == (100, 103, 103)
    found: list[int] = []
    cursor: str | None = ""
    while cursor is not None:
        page = success(teller.live.call("GET", data["more"] + "&limit=60" + (cursor and f"&cursor={cursor}")))
        found, cursor = found + [one["id"] for one in page["transactions"]], page["next_cursor"]
    assert sorted(found)[:100] == data["transactions"]
    assert len(set(found)) == len(found) == 103


def test_tail_prints_each_event_and_posts_it_signed_until_taken(service: Service, teller: Organization) -> None:
    since = _end(teller.live)
    with Receiver().running() as hook:
        hook.answer = status(503)
        arguments = ["events", "tail", "--key", teller.live.text, "--json", "--after", str(since)]
        process = subprocess.Popen(
            service.words(*arguments, "--forward-to", hook.url, "--secret", _SECRET),
            env=service.environment | {"PYTHONUNBUFFERED": "1"},
            stdout=subprocess.PIPE,
            text=True,
        )
        try:
            success(teller.live.send({"recipient": address(), "amount": 1}), 201)
            success(teller.live.send({"recipient": address(), "amount": 1}), 201)
            until(lambda: hook.calls, "the first is refused")
            hook.answer = status(204)
            refused = len(hook.calls)
            until(lambda: len({call.event["id"] for call in hook.calls[refused:]}) == 2)
        finally:
            process.send_signal(signal.SIGINT)
            printed, _ = process.communicate(timeout=30)
    events = _log(teller.live, after=since)["events"]
    assert process.returncode == 0
    assert [json.loads(line) for line in printed.splitlines()] == events
    for call, event in zip(hook.calls[-2:], events, strict=True):
        assert Webhook(_SECRET).verify(call.body, call.headers) == event
        assert call.headers["webhook-id"] == event["id"]
        assert call.body.decode() in teller.live.get("/v1/events", after=since).text, "byte for byte"


def test_tail_hands_nothing_to_another_machine(service: Service, teller: Organization) -> None:
    done = service.command("events", "tail", "--key", teller.live.text, "--forward-to", "http://192.0.2.1/", status=1)
    assert "this machine" in done.stderr
