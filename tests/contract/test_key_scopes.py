"""Keys with scopes and an end: each makes the calls of its scopes and no other, until its end and not after."""

import re
from concurrent.futures import ThreadPoolExecutor
from datetime import UTC, datetime, timedelta
from typing import Any

import httpx
import pytest

from tests.contract.calls import Key, Organization, address, nothing_changes, organization, refusal, success
from tests.contract.reversing import reverse, send, taken
from tests.deadline import until
from tests.service.up import Service

_ONE = {"recipient": "ada@example.com", "amount": 1}
_HOOK = "/v1/webhooks/1"
_OF_HOOKS = ("ping", "rotate", "disable", "enable", "replay", "skip")
# Each call of an organization, a body that it would at least read, and the scopes of which it needs one.
_CALLS: list[tuple[str, str, Any, set[str]]] = [
    *(("POST", f"/v1/points/{name}", _ONE, {"send"}) for name in ("verify", "send", "sent-before")),
    ("PATCH", "/v1/batches/1", {"send_at": "2999-01-01T00:00:00Z"}, {"send"}),
    ("POST", "/v1/batches/1/cancel", None, {"send"}),
    ("POST", "/v1/batches/1/approve", None, {"approve"}),
    ("POST", "/v1/batches/1/reject", {"reason": "x"}, {"approve"}),
    ("POST", "/v1/transactions/1/extend", {"held_until": "2999-01-01T00:00:00Z"}, {"send"}),
    ("POST", "/v1/points/reverse/verify", {"batch": 1, "reason": "x"}, {"reverse"}),
    ("POST", "/v1/points/reverse", {"batch": 1, "reason": "x"}, {"reverse"}),
    *(("GET", f"/v1/{name}", None, {"read"}) for name in ("transactions", "reversals", "events")),
    *(("GET", f"/v1/{name}", None, {"read"}) for name in ("requests", "statement")),
    ("GET", "/v1/transactions/1", None, {"read"}),
    ("GET", "/v1/batches", None, {"read", "approve"}),
    ("GET", "/v1/batches/1", None, {"read", "send", "approve"}),
    ("GET", "/v1/batches/1/recipients", None, {"read", "approve"}),
    ("GET", "/v1/reversals/1", None, {"read", "reverse"}),
    ("GET", "/v1/organization", None, {"read", "send", "reverse", "webhooks", "approve"}),
    ("POST", "/v1/webhooks", {}, {"webhooks"}),
    ("GET", "/v1/webhooks", None, {"webhooks"}),
    *((method, _HOOK, {} if method == "PATCH" else None, {"webhooks"}) for method in ("GET", "PATCH", "DELETE")),
    *(("POST", f"{_HOOK}/{name}", None, {"webhooks"}) for name in _OF_HOOKS),
    ("GET", f"{_HOOK}/deliveries", None, {"webhooks"}),
    ("POST", "/v1/sandbox/reset", None, {"send"}),
    *(("POST", f"/v1/sandbox/{name}", {}, {"send"}) for name in ("clock", "users")),
]
_SCOPES = ("read", "send", "reverse", "webhooks", "approve")


@pytest.fixture(scope="module")
def made(service: Service) -> Organization:
    return organization(service, 1_000)


@pytest.fixture(scope="module")
def keys(made: Organization) -> dict[str, Key]:
    with ThreadPoolExecutor(4) as pool:
        return dict(zip(_SCOPES, pool.map(lambda scope: made.new_key(scopes=[scope]), _SCOPES), strict=True))


def test_a_key_makes_the_calls_of_its_scope_and_no_other(made: Organization, keys: dict[str, Key]) -> None:
    for scope, key in keys.items():
        for method, path, body, needed in _CALLS:
            answer = key.call(method, path, **({} if body is None else {"json": body}))
            is_refused = answer.status_code == 403 and answer.json()["additional_data"]["code"] == "insufficient_scope"
            assert is_refused is (scope not in needed), (scope, method, path, answer.text)
            if is_refused:
                [sentence] = refusal(answer, 403, "authorization")["authorization"]
                assert needed <= set(re.findall("[a-z]+", sentence)), "it names what is missing"
    described = made.service.call("GET", "/openapi.json").json()["paths"]
    of_organizations = {
        (method.upper(), path)
        for path, methods in described.items()
        for method in methods
        if path.startswith("/v1/") and not path.startswith("/v1/platform/")
    }
    assert {(method, re.sub("/1(?=/|$)", "/{id}", path)) for method, path, *_ in _CALLS} == of_organizations


def test_a_missing_scope_is_answered_before_any_fault_and_a_key_without_scopes_has_all(
    made: Organization, keys: dict[str, Key]
) -> None:
    with nothing_changes(made.live):
        for refused in ({"amount": 0}, {"amount": 1, "recipients": ["no"]}, {"recipients": [address()] * 3_000}):
            for name in ("send", "verify"):
                answer = keys["read"].call("POST", f"/v1/points/{name}", json=refused)
                refusal(answer, 403, "authorization")
                assert answer.json()["additional_data"]["code"] == "insufficient_scope"
    both = made.new_key(scopes=["read", "send"])
    success(both.send({"recipient": address(), "amount": 1}), 201)
    success(both.get("/v1/transactions"))
    for method, path, body, _ in _CALLS:
        answer = made.live.call(method, path, **({} if body is None else {"json": body}))
        assert answer.status_code != 403 or answer.json()["additional_data"]["code"] != "insufficient_scope"


def test_a_key_without_read_sees_and_changes_only_what_it_has_sent(made: Organization, keys: dict[str, Key]) -> None:
    own, later = made.new_key(scopes=["send", "reverse"]), datetime.now(UTC) + timedelta(days=1)
    stranger = organization(made.service, 10).live
    one = address()
    held = {"recipient": one, "amount": 2, "hold_days": 1}
    scheduled = {"recipient": one, "amount": 2, "send_at": later.isoformat()}

    def calls_about(key: Key, issued: int, transaction: int, waiting: int, reversal: int) -> list[httpx.Response]:
        """Make each call that shows or changes something sent, those that change last."""
        moved, held_until = (later + timedelta(hours=1)).isoformat(), (later + timedelta(days=1)).isoformat()
        batches: list[dict[str, Any]] = [
            {"batch": issued, "reason": "x"},
            {"transactions": [transaction], "reason": "x"},
        ]
        return [
            key.get(f"/v1/batches/{issued}"),
            key.get(f"/v1/reversals/{reversal}"),
            *(key.call("POST", "/v1/points/reverse/verify", json=body) for body in batches),
            key.call("POST", f"/v1/transactions/{transaction}/extend", json={"held_until": held_until}),
            key.move(waiting, {"send_at": moved}),
            key.cancel(waiting),
            *(reverse(key, body, Idempotency_Key=f"{issued}-back") for body in batches[:1]),
            reverse(key, batches[1]),
        ]

    def sent_by(key: Key) -> tuple[int, int, int, int]:
        issued, [transaction] = send(key, held)
        waiting, to_reverse = success(key.send(scheduled), 202)["batch_id"], send(key, held)[0]
        body = {"batch": to_reverse, "reason": "x"}
        return issued, transaction, waiting, taken(key, body, Idempotency_Key=f"{to_reverse}-of")["reversal_id"]

    def counted_by(key: Key) -> int:
        counted = success(key.call("POST", "/v1/points/sent-before", json={"recipient": one, "amount": 2}))
        return int(counted["batch_count"])

    of_others = sent_by(made.live)
    assert (counted_by(made.live), counted_by(own)) == (2, 0)
    of_own = sent_by(own)
    with nothing_changes(made.live):
        refused = [(each.status_code, each.json()["errors"]) for each in calls_about(own, *of_others)]
        assert refused == [(each.status_code, each.json()["errors"]) for each in calls_about(stranger, *of_others)]
        assert {status for status, _ in refused} == {404, 400}, "400 for the ids in a body"
    assert {each.status_code for each in calls_about(own, *of_own)} == {200, 201}
    sees_all = made.new_key(scopes=["read", "send", "reverse"])
    assert {each.status_code for each in calls_about(sees_all, *of_others)} == {200, 201}
    # Another key has used the idempotency key, for the same body.
    again = {"batch": of_others[0], "reason": "x"}
    refusal(reverse(own, again, Idempotency_Key=f"{of_others[0]}-back"), 404, "batch")


def test_a_key_is_made_listed_and_told_with_its_bounds(service: Service) -> None:
    made = organization(service, 100)
    bounds = ["--scope", "send", "--scope", "read", "--scope", "send", "--expires", "2999-12-31"]
    bounds += ["--batch-limit", "20", "--daily-limit", "100", "--name", "Till"]
    whole = service.json("keys", "create", str(made.id), *bounds)
    shown: dict[str, Any] = {"scopes": ["read", "send"], "expires_at": "3000-01-01T00:00:00.000000Z"}
    shown |= {"batch_limit": 20, "daily_limit": 100}
    assert whole | shown == whole
    plain = made.live
    listed = {one["id"]: one for one in service.json("keys", "list", str(made.id))}
    none = dict.fromkeys(shown)
    assert listed[whole["id"]] | shown | {"name": "Till"} == listed[whole["id"]]
    assert [one for one in listed.values() if one | none == one and plain.text.startswith(one["start"])]
    said = re.sub(r"\s+", " ", service.command("keys", "list", str(made.id)).stdout)
    assert "read, send only; until the end of 2999-12-31 UTC; 20 points a batch; 100 points a day" in said
    events: list[Any] = []

    def are_told() -> bool:
        events[:] = success(plain.get("/v1/events", types="key.created"))["events"]
        return len(events) == 2

    until(are_told, every_s=0.1)
    assert [event["data"]["key"] for event in events] == [
        {"id": whole["id"], "name": "Till", "sandbox": False, **shown},
        {"id": events[1]["data"]["key"]["id"], "name": None, "sandbox": False, **none},
    ]


def test_a_wrong_bound_is_said_and_makes_no_key(made: Organization) -> None:
    before = made.service.platform("GET", f"organizations/{made.id}/keys")
    for option, given, said in (
        ("--expires", "tomorrow", "must be a day such as 2026-12-31, or a time such as 2026-12-31T18:00:00Z"),
        ("--expires", "2999-02-30", "must be a day that exists, before 9999-12-31"),
        ("--expires", "2999-12-31T18:00", "must be a day such as 2026-12-31, or a time such as 2026-12-31T18:00:00Z"),
        ("--expires", "2020-12-31", "must be later than now"),
        ("--scope", "write", "is not one of 'read', 'send', 'reverse', 'webhooks', 'approve'"),
        ("--batch-limit", "0", "0 is not in the range"),
        ("--daily-limit", "1.5", "'1.5' is not a valid integer range"),
    ):
        answered = made.service.command("keys", "create", str(made.id), option, given, status=2)
        assert said in re.sub(r"\s+", " ", answered.stderr)
    assert made.service.platform("GET", f"organizations/{made.id}/keys") == before


def test_a_key_works_until_its_end_and_is_then_401_in_the_words_of_every_other(made: Organization) -> None:
    end = datetime.now(UTC) + timedelta(seconds=5)
    key = made.new_key(expires_at=end.isoformat())
    words = refusal(made.service.call("GET", "/v1/organization"), 401, "authorization")
    body = {"recipient": address(), "amount": 1}

    def has_ended() -> bool:
        sent_at = datetime.now(UTC)
        answers = key.get("/v1/organization"), key.send(body, Idempotency_Key="ending")
        if datetime.now(UTC) < end:
            assert [answer.status_code for answer in answers] == [200, 201]
        elif sent_at > end:
            for answer in answers:
                assert refusal(answer, 401, "authorization") == words
                assert answer.headers["WWW-Authenticate"] == "Bearer"
            return True
        return False

    until(has_ended, every_s=0.2)
