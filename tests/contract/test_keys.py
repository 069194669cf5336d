"""Keys: who is let in, the one answer to everybody else, and how often a key may call."""

from concurrent.futures import ThreadPoolExecutor
from typing import Any

import pytest

from tests.contract.calls import Key, Organization, address, nothing_changes, organization, refusal, success
from tests.deadline import until
from tests.e2e.raw_http import exchange, first_bytes
from tests.service.up import Service

_READ = ("/v1/organization", "/v1/batches", "/v1/transactions", "/v1/batches/1")
_POSTED = ("/v1/points/verify", "/v1/points/send", "/v1/sandbox/reset")


@pytest.fixture(scope="module")
def revoked(service: Service, globex: Organization) -> str:
    """Return a key that was good before it was revoked, while the other keys of its organization stay good."""
    key, key_id = globex.new_key_with_id()
    assert success(key.get("/v1/organization"))["id"] == globex.id
    for _ in range(2):
        service.command("keys", "revoke", str(key_id))
    refusal(key.get("/v1/organization"), 401, "authorization")
    success(globex.live.get("/v1/organization"))
    return key.text


@pytest.mark.parametrize("path", [*_READ, *_POSTED])
def test_every_bad_key_is_401_in_the_same_words(service: Service, acme: Organization, revoked: str, path: str) -> None:
    good, words = acme.live.text, set()
    unknown = good[:-5] + ("aaaaa" if good[-5:] != "aaaaa" else "bbbbb")
    given = ["", "Bearer", f"Basic {good}", good, f"Bearer {good} {good}", f"Bearer {good}0", "Bearer nonsense"]
    given += [f"Bearer {unknown}", f"Bearer {good.swapcase()}", f"Bearer {revoked}"]
    body = {"json": {"recipient": address(), "amount": 1}} if path in _POSTED else {}
    with nothing_changes(acme.live):
        for headers in [{}, *({"Authorization": one} for one in given)]:
            answer = service.request("POST" if body else "GET", path, headers=headers, **body)
            words.add(refusal(answer, 401, "authorization")["authorization"][0])
            assert answer.headers["WWW-Authenticate"] == "Bearer"
    assert words == {"A valid API key is required, sent as `Authorization: Bearer <key>`."}


_FAULTS: list[dict[str, Any]] = [
    {"content": b"nonsense", "headers": {"Content-Type": "text/plain"}},
    {"content": b"{" * 100_000, "headers": {"Content-Type": "application/json"}},
    {"json": {"amount": 0, "recipients": ["no"]}},
    {"json": {"amount": 1, "recipient": "a@example.com"}, "headers": {"Idempotency-Key": "a b"}},
    {"json": {"amount": 1, "recipient": "a@example.com"}, "params": {"atomic": "true"}},
]


@pytest.mark.parametrize("fault", _FAULTS, ids=["type", "JSON", "fields", "idempotency key", "query"])
def test_a_bad_key_is_answered_before_any_fault(service: Service, revoked: str, fault: dict[str, Any]) -> None:
    for key in (None, "nonsense", revoked):
        refusal(service.call("POST", "/v1/points/send", key=key, **fault), 401, "authorization")


def test_no_large_body_is_waited_for_from_a_stranger(service: Service, revoked: str) -> None:
    head = b"POST /v1/points/send HTTP/1.1\r\nHost: x\r\nContent-Type: application/json\r\n%b\r\n%b\r\n"
    key = b"Authorization: Bearer %b\r\n" % revoked.encode()
    requests = [
        head % (framing, given)
        for given in (key, b"")
        for framing in (b"Content-Length: 9000000", b"Transfer-Encoding: chunked", b"Content-Length: 65537")
    ]
    # The last of each three is short enough to be received before anything looks at it, and is waited for.
    with ThreadPoolExecutor(len(requests)) as pool:
        answers = list(pool.map(lambda request: exchange(service.port, request), requests))
    assert {answer.status for answer in answers} == {401}
    large, short = [answer for place, answer in enumerate(answers) if place % 3 != 2], answers[2::3]
    assert max(answer.elapsed_s for answer in large) < min(answer.elapsed_s for answer in short)


def test_a_key_tells_its_mode_and_opens_its_own_organization_alone(acme: Organization, globex: Organization) -> None:
    for caller in (acme, globex):
        assert caller.live.text.startswith("pts_live_")
        assert caller.development.text.startswith("pts_dev_")
        for key in (caller.live, caller.development):
            assert success(key.get("/v1/organization"))["id"] == caller.id
    for scheme in ("bearer ", "BEARER ", "Bearer   "):
        headers = {"Authorization": f"{scheme}{acme.live.text}"}
        assert success(acme.service.call("GET", "/v1/organization", headers=headers))["id"] == acme.id


# The limit of this service is 300 calls a minute. Two windows take no more than 600, wherever they begin.
_LIMIT, _CALLS = 300, 601


def _is_counted(key: Key) -> bool:
    with ThreadPoolExecutor(8) as pool:
        told = pool.map(lambda _: key.get("/v1/organization").headers["RateLimit"], range(32))
        return f'"key";r={_LIMIT}' not in set(told)


def test_a_key_that_calls_too_often_gets_429_with_retry_after_and_other_keys_do_not(narrow: Service) -> None:
    made = organization(narrow, 100)
    busy, other = made.live, made.new_key()
    # A test before may have stopped Redis; each process then looks at growing intervals whether it is back.
    until(lambda: _is_counted(made.new_key()), every_s=1)
    with ThreadPoolExecutor(8) as pool:
        answers = list(pool.map(lambda _: busy.get("/v1/organization"), range(_CALLS)))
    assert {answer.status_code for answer in answers} == {200, 429}
    assert sum(answer.status_code == 200 for answer in answers) >= _LIMIT
    limited = next(answer for answer in answers if answer.status_code == 429)
    refusal(limited, 429, "rate_limit")
    left = {answer.headers["RateLimit"] for answer in answers if answer.status_code == 200}
    assert left >= {f'"key";r={number}' for number in range(_LIMIT)}
    assert {answer.headers["RateLimit"] for answer in answers if answer.status_code == 429} == {'"key";r=0'}
    assert {answer.headers["RateLimit-Policy"] for answer in answers} == {f'"key";q={_LIMIT};w=60'}
    assert 1 <= int(limited.headers["Retry-After"]) <= 60

    # It is looked at before the body is read, and what is refused is not issued.
    headers = {"Content-Type": "text/plain"}
    refusal(busy.call("POST", "/v1/points/send", content=b"x" * 300_000, headers=headers), 429, "rate_limit")
    expecting = f"POST /v1/points/send HTTP/1.1\r\nHost: x\r\nAuthorization: Bearer {busy.text}\r\n"
    expecting += "Expect: 100-continue\r\nContent-Type: application/json\r\nContent-Length: 1000\r\n\r\n"
    assert first_bytes(narrow.port, expecting.encode()).startswith(b"HTTP/1.1 429 ")
    body = {"recipient": address(), "amount": 10}
    refusal(busy.send(body, Idempotency_Key="limited"), 429, "rate_limit")
    assert other.balance == 100
    answer = other.send(body, Idempotency_Key="limited")
    success(answer, 202 if answer.status_code == 202 else 201)  # This service waits for two seconds only.
    assert "Idempotency-Replayed" not in answer.headers
    assert made.development.balance == 77
    assert {busy.get(path).status_code for path in ("/healthz", "/readyz", "/metrics")} == {200}
