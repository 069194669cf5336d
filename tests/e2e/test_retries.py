"""Retries over HTTP: one idempotency key is one batch, whoever asks and however often."""

import uuid
from concurrent.futures import ThreadPoolExecutor

import httpx

from tests.e2e.conftest import Service


def _key() -> str:
    return uuid.uuid4().hex


def test_a_retry_gets_the_same_201_whatever_has_happened_since(service: Service) -> None:
    caller, address, key = service.organization(100), f"{_key()}@example.com", _key()
    body = {"recipients": [address, f"{_key()}@example.com"], "amount": 10}
    first = service.send(caller.live, body, Idempotency_Key=key)
    assert "Idempotency-Replayed" not in first.headers
    service.points("organizations", "refill", str(caller.id), "500")
    service.points("users", "create", address, "Ada", "Lovelace")
    service.points("organizations", "suspend", str(caller.id))
    again = service.send(caller.live, body, Idempotency_Key=key)
    assert again.status_code == 201
    assert again.headers["Idempotency-Replayed"] == "true"
    assert again.content == first.content
    assert service.balance(caller.live) == 580


def test_the_same_key_with_another_body_is_422_and_writes_nothing(service: Service) -> None:
    caller, key = service.organization(100), _key()
    service.send(caller.live, {"recipient": "a@example.com", "amount": 10}, Idempotency_Key=key)
    other = service.send(caller.live, {"recipient": "a@example.com", "amount": 11}, Idempotency_Key=key)
    assert other.status_code == 422
    assert list(other.json()["errors"]) == ["idempotency_key"]
    assert service.balance(caller.live) == 90


def test_a_body_that_means_the_same_is_the_same_body(service: Service) -> None:
    caller, key = service.organization(100), _key()
    first = service.send(caller.live, {"recipient": "a@example.com", "amount": 10}, Idempotency_Key=key)
    body = {"amount": 10, "atomic": False, "label": None, "recipients": [" A@EXAMPLE.com"], "unknown": 1}
    again = service.send(caller.live, body, Idempotency_Key=key)
    assert again.content == first.content


def test_a_key_is_used_per_organization_and_mode(service: Service) -> None:
    one, other, key = service.organization(100), service.organization(100), _key()
    body = {"recipient": "a@example.com", "amount": 10}
    answers = [service.send(secret, body, Idempotency_Key=key) for secret in (one.live, one.development, other.live)]
    assert [answer.status_code for answer in answers] == [201, 201, 201]
    assert len({answer.json()["additional_data"]["batch_id"] for answer in answers}) == 3


def test_without_a_key_two_equal_sends_are_two_batches(service: Service) -> None:
    caller = service.organization(100)
    for _ in range(2):
        assert service.send(caller.live, {"recipient": "a@example.com", "amount": 10}).status_code == 201
    assert service.balance(caller.live) == 80


def test_a_refused_request_does_not_use_up_its_key(service: Service) -> None:
    caller, key = service.organization(100), _key()
    assert service.send(caller.live, {"recipient": "nonsense", "amount": 1}, Idempotency_Key=key).status_code == 400
    service.points("organizations", "suspend", str(caller.id))
    body = {"recipient": "a@example.com", "amount": 1}
    assert service.send(caller.live, body, Idempotency_Key=key).status_code == 403
    service.points("organizations", "resume", str(caller.id))
    answer = service.send(caller.live, body, Idempotency_Key=key)
    assert answer.status_code == 201
    assert "Idempotency-Replayed" not in answer.headers


def test_sixteen_callers_with_one_key_at_once_share_one_batch(service: Service) -> None:
    caller, key = service.organization(100_000), _key()
    body = {"recipients": [f"{number}@example.com" for number in range(2_000)], "amount": 10}
    with ThreadPoolExecutor(16) as pool:
        answers = list(pool.map(lambda _: service.send(caller.live, body, Idempotency_Key=key), range(16)))
    assert {answer.status_code for answer in answers} == {201}
    assert len({answer.content for answer in answers}) == 1
    assert service.balance(caller.live) == 80_000


def test_a_key_that_a_proxy_has_doubled_issues_nothing_and_names_the_header(service: Service) -> None:
    caller = service.organization(100)
    headers = [("Idempotency-Key", "once"), ("Idempotency-Key", "once"), ("Authorization", f"Bearer {caller.live}")]
    body = {"recipient": "ann@example.com", "amount": 10}
    answer = httpx.post(f"{service.url}/v1/points/send", json=body, headers=headers, timeout=30)
    assert (answer.status_code, list(answer.json()["errors"])) == (400, ["idempotency_key"])
    assert service.balance(caller.live) == 100
