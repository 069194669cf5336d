"""Webhooks: an endpoint is a cursor over the log."""

import base64
import hashlib
import hmac
import statistics
import time
from collections.abc import Iterator
from typing import Any

import pytest
from standardwebhooks import Webhook

from tests.contract.calls import TIMESTAMP, Key, Organization, address, organization, refusal, success
from tests.deadline import until
from tests.pace import in_time
from tests.receiver import Receiver, status
from tests.service.up import Service

_WEBHOOK = {"id", "url", "types", "description", "status", "disabled_reason", "position", "failures", "failing_since"}
_WEBHOOK |= {"retry_at", "old_secret_until", "created_at"}
# Nobody listens there.
_NOWHERE = "http://127.0.0.1:1024/"


@pytest.fixture
def receiver() -> Iterator[Receiver]:
    with Receiver().running() as running:
        yield running


@pytest.fixture(scope="module")
def two(service: Service) -> list[Organization]:
    """Make organizations whose logs nobody else writes in."""
    return [organization(service, balance) for balance in (1_000, 1_000)]


@pytest.fixture(autouse=True)
def _no_webhook_is_left(two: list[Organization]) -> Iterator[None]:
    yield
    for key in (two[0].live, two[0].development):
        for webhook in success(key.get("/v1/webhooks"))["webhooks"]:
            assert key.call("DELETE", f"/v1/webhooks/{webhook['id']}").status_code == 204


def _make(key: Key, url: str, **fields: Any) -> dict[str, Any]:
    webhook: dict[str, Any] = success(key.call("POST", "/v1/webhooks", json={"url": url, **fields}), 201)
    return webhook


def _act(key: Key, webhook: dict[str, Any], action: str, **body: Any) -> Any:
    return key.call("POST", f"/v1/webhooks/{webhook['id']}/{action}", **({"json": body} if body else {}))


def _read(key: Key, webhook: dict[str, Any]) -> dict[str, Any]:
    found: dict[str, Any] = success(key.get(f"/v1/webhooks/{webhook['id']}"))
    assert set(found) == _WEBHOOK
    return found


def test_an_issued_batch_arrives_as_the_log_shows_it_signed(two: list[Organization], receiver: Receiver) -> None:
    key = two[0].live
    webhook = _make(key, receiver.url, types=["batch.*", "*.issued"], description="The shop")
    assert set(webhook) == _WEBHOOK | {"secret"}
    assert (webhook["status"], webhook["types"], webhook["description"]) == (
        "enabled",
        ["batch.*", "*.issued"],
        "The shop",
    )
    assert TIMESTAMP.match(webhook["created_at"])
    email = address()
    batch_id = key.send({"recipient": email, "amount": 1}).json()["additional_data"]["batch_id"]
    until(lambda: receiver.calls, "the event arrives")
    [call] = receiver.calls
    assert (call.event["type"], call.event["data"]["batch"]["batch_id"]) == ("batch.issued", batch_id)
    assert Webhook(webhook["secret"]).verify(call.body, call.headers) == call.event
    assert call.headers["webhook-id"] == call.event["id"]
    assert email.encode() not in call.body
    signed = f"{call.headers['webhook-id']}.{call.headers['webhook-timestamp']}.".encode() + call.body
    digest = hmac.digest(base64.b64decode(webhook["secret"].removeprefix("whsec_")), signed, hashlib.sha256)
    assert call.headers["webhook-signature"] == f"v1,{base64.b64encode(digest).decode()}"
    shown = key.get("/v1/events", after=call.event["sequence"] - 1, limit=1)
    assert call.body in shown.content
    until(lambda: _read(key, webhook)["position"] >= call.event["sequence"], "the webhook has moved on")


def test_an_event_arrives_within_a_second_of_its_commit(two: list[Organization], receiver: Receiver) -> None:
    """Most of them, as this machine may be busy elsewhere at the moment of one."""
    key = two[0].live
    _make(key, receiver.url, types=["batch.issued"])
    waits_s: list[float] = []
    for number in range(7):
        success(key.send({"recipient": address(), "amount": 1}), 201)
        answered_at = time.monotonic()
        until(lambda so_many=number: len(receiver.calls) > so_many, "the event arrives")
        waits_s.append(receiver.calls[-1].at - answered_at)
    assert in_time(statistics.median(waits_s), 1)


def test_a_receiver_that_is_down_is_tried_again_attempts_shown(two: list[Organization], receiver: Receiver) -> None:
    key = two[0].live
    webhook = _make(key, receiver.url, types=["batch.issued"])
    receiver.answer = status(503)
    for _ in range(3):
        assert key.send({"recipient": address(), "amount": 1}).status_code == 201
    until(lambda: _read(key, webhook)["failures"] == 1, "an attempt has failed")
    failing = _read(key, webhook)
    assert failing["status"] == "failing"
    assert all(TIMESTAMP.match(failing[name]) for name in ("failing_since", "retry_at"))
    receiver.answer = status(200)
    until(lambda: len(receiver.calls) >= 4, "all have arrived")
    first, *others = receiver.sequences
    assert others == sorted(set(others))
    assert others[0] == first
    assert (_read(key, webhook)["status"], _read(key, webhook)["failures"]) == ("enabled", 0)
    deliveries = _deliveries(key, webhook)
    assert [one["delivered"] for one in deliveries] == [True, True, True, False]
    assert [one["attempt"] for one in deliveries] == [1, 1, 2, 1]
    assert [(one["status"], one["error"]) for one in deliveries[-2:]] == [(200, None), (503, "refused")]
    assert [one["event"]["sequence"] for one in deliveries] == [*reversed(others), first]


def _deliveries(key: Key, webhook: dict[str, Any]) -> list[dict[str, Any]]:
    """Return all attempts, read in pages of two."""
    found: list[dict[str, Any]] = []
    query: dict[str, Any] = {"limit": 2}
    while True:
        page = success(key.get(f"/v1/webhooks/{webhook['id']}/deliveries", **query))
        found += page["deliveries"]
        if page["next_cursor"] is None:
            return found
        query["cursor"] = page["next_cursor"]


def test_disabled_nothing_is_sent_and_enabled_all_of_it(two: list[Organization], receiver: Receiver) -> None:
    key = two[0].live
    webhook = _make(key, receiver.url, types=["batch.issued"])
    off = success(_act(key, webhook, "disable"))
    assert (off["status"], off["disabled_reason"]) == ("disabled", "caller")
    assert success(_act(key, webhook, "disable")) == off
    refusal(_act(key, webhook, "ping"), 409, "webhook")
    batches = [key.send({"recipient": address(), "amount": 1}).json()["additional_data"]["batch_id"] for _ in range(3)]
    until(lambda: len(success(key.get("/v1/events", types="batch.issued", limit=1000))["events"]) >= 3, "are numbered")
    assert receiver.calls == []
    assert success(_act(key, webhook, "enable"))["status"] == "enabled"
    until(lambda: len(receiver.calls) == 3, "all have arrived")
    assert [call.event["data"]["batch"]["batch_id"] for call in receiver.calls] == batches


def test_a_ping_arrives_whatever_types_and_again_by_a_replay(two: list[Organization], receiver: Receiver) -> None:
    key = two[0].live
    webhook = _make(key, receiver.url, types=["balance.low"])
    success(_act(key, webhook, "ping"))
    until(lambda: len(receiver.calls) == 1, "the ping arrives")
    ping = receiver.calls[0].event
    assert (ping["type"], ping["data"]["webhook"]["id"]) == ("ping", webhook["id"])
    success(_act(key, webhook, "replay", from_sequence=ping["sequence"]))
    until(lambda: len(receiver.calls) == 2, "the ping arrives again")
    assert receiver.calls[1].body == receiver.calls[0].body
    refusal(_act(key, webhook, "replay", from_sequence=ping["sequence"] + 100), 400, "from_sequence")
    refusal(_act(key, webhook, "replay", from_sequence=0), 400, "from_sequence")
    refusal(_act(key, webhook, "replay", from_seq=1), 400, "from_sequence", "from_seq")


def test_skip_leaves_the_event_that_it_is_stuck_at(two: list[Organization], receiver: Receiver) -> None:
    key = two[0].live
    webhook = _make(key, receiver.url, types=["balance.low"])
    refusal(_act(key, webhook, "skip"), 409, "webhook")
    receiver.answer = status(500)
    for _ in range(2):
        success(_act(key, webhook, "ping"))
    until(lambda: _read(key, webhook)["failures"] == 1, "an attempt has failed")
    receiver.answer = status(200)
    assert success(_act(key, webhook, "skip"))["failures"] == 0
    until(lambda: len(receiver.calls) == 2, "the next arrives")
    stuck, after = receiver.sequences
    assert after > stuck


def test_every_secret_of_a_day_signs_however_often_it_was_rotated(two: list[Organization], receiver: Receiver) -> None:
    key = two[0].live
    webhook = _make(key, receiver.url)
    second, third = (success(_act(key, webhook, "rotate"))["secret"] for _ in range(2))
    success(_act(key, webhook, "ping"))
    until(lambda: receiver.calls, "the ping arrives")
    for secret in (webhook["secret"], second, third):
        Webhook(secret).verify(receiver.calls[-1].body, receiver.calls[-1].headers)


def test_a_webhook_is_changed_in_part_and_deleted(two: list[Organization], receiver: Receiver) -> None:
    key = two[0].live
    webhook = _make(key, _NOWHERE, description="The shop")
    path = f"/v1/webhooks/{webhook['id']}"
    changed = success(key.call("PATCH", path, json={"url": receiver.url, "types": ["ping"]}))
    assert (changed["url"], changed["types"], changed["description"]) == (receiver.url, ["ping"], "The shop")
    for nothing in ("", None):
        assert success(key.call("PATCH", path, json={"description": nothing}))["description"] is None
    assert success(key.get("/v1/webhooks")) == {"webhooks": [_read(key, webhook)], "next_cursor": None}
    deleted = key.call("DELETE", path)
    assert (deleted.status_code, deleted.content) == (204, b"")
    refusal(key.get(path), 404, "webhook")
    refusal(key.call("DELETE", path), 404, "webhook")


def test_another_organization_and_the_other_mode_see_nothing_of_it(two: list[Organization]) -> None:
    webhook = _make(two[0].live, _NOWHERE)
    path = f"/v1/webhooks/{webhook['id']}"
    for other in (two[1].live, two[0].development):
        assert success(other.get("/v1/webhooks"))["webhooks"] == []
        for method, more in (
            *(("GET", ""), ("DELETE", ""), ("GET", "/deliveries"), ("POST", "/ping"), ("POST", "/rotate")),
            *(("POST", "/disable"), ("POST", "/enable"), ("POST", "/skip")),
        ):
            refusal(other.call(method, path + more), 404, "webhook")
        refusal(other.call("PATCH", path, json={"types": ["*"]}), 404, "webhook")
        refusal(other.call("POST", f"{path}/replay", json={"from_sequence": 1}), 404, "webhook")


def test_ten_are_as_many_as_there_may_be(two: list[Organization]) -> None:
    key = two[0].development
    for _ in range(10):
        _make(key, _NOWHERE)
    refusal(key.call("POST", "/v1/webhooks", json={"url": _NOWHERE}), 403, "url")


@pytest.mark.parametrize(
    ("body", "fields"),
    [
        ({}, ["url"]),
        ({"url": ""}, ["url"]),
        ({"url": 7, "types": "batch.*", "description": ["x"]}, ["url", "types", "description"]),
        ({"url": _NOWHERE, "types": []}, ["types"]),
        (
            {"url": _NOWHERE, "types": ["batch.issued", "batch.isued", "batch.issued", 7]},
            ["types.1", "types.2", "types.3"],
        ),
        ({"url": _NOWHERE, "desciption": "x"}, ["desciption"]),
        ({"url": _NOWHERE, "description": "x" * 256}, ["description"]),
        *(
            ({"url": url}, ["url"])
            for url in (
                *(
                    "http://8.8.8.8/",
                    "https://10.0.0.1/",
                    "https://169.254.169.254/latest/meta-data/",
                    "https://[::1]/",
                ),
                *("https://[::ffff:10.0.0.1]/", "https://[64:ff9b::a00:1]/", "https://[2002:a00:1::]/"),
                *("https://user:secret@127.0.0.1/", "http://127.0.0.1:22/", "ftp://127.0.0.1/", "https://0xa000001/"),
            )
        ),
    ],
)
def test_what_is_no_webhook_is_refused_with_every_fault(
    two: list[Organization], body: dict[str, Any], fields: list[str]
) -> None:
    errors = refusal(two[0].live.call("POST", "/v1/webhooks", json=body), 400, *fields)
    if "types.1" in fields:
        assert "did you mean batch.issued?" in errors["types.1"][0]
    if "desciption" in fields:
        assert "did you mean description?" in errors["desciption"][0]


def test_with_redis_away_an_event_still_arrives(narrow: Service, receiver: Receiver) -> None:
    made = organization(narrow, 100)
    _make(made.live, receiver.url, types=["batch.issued"])
    with narrow.paused("redis"):
        assert made.live.send({"recipient": address(), "amount": 1}).status_code in (201, 202)
        until(lambda: receiver.calls, "the event arrives")
