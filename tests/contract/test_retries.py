"""Retries: one idempotency key is one batch, whoever asks and however often."""

import uuid
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import httpx
import pytest

from tests.contract.calls import Organization, address, addresses, nothing_changes, organization, refusal
from tests.service.up import Service

_TWO: dict[str, Any] = {"recipients": ["a@example.com", "b@example.com"], "amount": 10}
_OTHERS: list[dict[str, Any]] = [{"amount": 11}, {"atomic": True}, {"label": "other"}]
_OTHERS += [{"recipients": emails} for emails in (["b@example.com", "a@example.com"], ["a@example.com"])]


def _key() -> str:
    return uuid.uuid4().hex


def _id(answer: httpx.Response) -> int:
    return int(answer.json()["additional_data"]["batch_id"])


def _is_replay(answer: httpx.Response, first: httpx.Response) -> bool:
    is_marked = answer.headers.get("Idempotency-Replayed") == "true"
    return is_marked and answer.status_code == 201 and answer.json() == first.json()


def _is_first(answer: httpx.Response) -> bool:
    return answer.status_code == 201 and "Idempotency-Replayed" not in answer.headers


def test_a_retry_gets_the_same_201_whatever_has_happened_since(service: Service) -> None:
    made, email, key = organization(service, 25), address(), _key()
    body = {"recipients": [email, *addresses(2)], "amount": 10, "label": "once"}
    first = made.live.send(body, Idempotency_Key=key)
    assert _is_first(first)
    made.refill(500)
    service.register(email)
    made.change(is_suspended=True)
    assert _is_replay(made.live.send(body, Idempotency_Key=key), first)
    assert made.live.balance == 505
    # The batch itself is shown as it is now.
    assert made.live.batch(_id(first))["transactions"][0]["credited"] is True


@pytest.mark.parametrize("change", _OTHERS, ids=str)
def test_the_same_key_with_another_body_is_422_and_writes_nothing(acme: Organization, change: dict[str, Any]) -> None:
    key = _key()
    first = acme.live.send(_TWO, Idempotency_Key=key)
    with nothing_changes(acme.live):
        refusal(acme.live.send({**_TWO, **change}, Idempotency_Key=key), 422, "idempotency_key")
    assert _is_replay(acme.live.send(_TWO, Idempotency_Key=key), first)


def test_a_body_that_means_the_same_is_the_same_body(acme: Organization) -> None:
    key = _key()
    first = acme.live.send({"recipient": "a@example.com", "amount": 10}, Idempotency_Key=key)
    body = {"amount": 10, "atomic": False, "label": None, "recipients": [" A@EXAMPLE.com"]}
    assert _is_replay(acme.live.send(body, Idempotency_Key=key), first)


def test_a_key_names_a_batch_of_one_organization_and_mode(acme: Organization, globex: Organization) -> None:
    key = _key()
    answers = [one.send(_TWO, Idempotency_Key=key) for one in (acme.live, acme.development, globex.live)]
    assert all(_is_first(answer) for answer in answers)
    assert len({_id(answer) for answer in answers}) == 3
    # Another API key of the same organization and mode asks for the same batch.
    assert _is_replay(acme.new_key().send(_TWO, Idempotency_Key=key), answers[0])


def test_without_a_key_two_equal_sends_are_two_batches(acme: Organization) -> None:
    before = acme.live.balance
    assert len({_id(acme.live.send(_TWO)) for _ in range(2)}) == 2
    assert acme.live.balance == before - 40


def test_a_refused_request_does_not_use_up_its_key(globex: Organization) -> None:
    key = _key()
    refusal(globex.live.send({**_TWO, "amount": 0}, Idempotency_Key=key), 400, "amount")
    with globex.stopped():
        refusal(globex.live.send(_TWO, Idempotency_Key=key), 403, "organization")
    assert _is_first(globex.live.send(_TWO, Idempotency_Key=key))


def test_callers_with_one_key_at_once_share_one_batch(acme: Organization) -> None:
    before, key = acme.live.balance, _key()
    body = {"recipients": addresses(2_000), "amount": 10}
    with ThreadPoolExecutor(16) as pool:
        answers = list(pool.map(lambda _: acme.live.send(body, Idempotency_Key=key), range(16)))
    assert {answer.status_code for answer in answers} == {201}
    assert len({answer.content for answer in answers}) == 1
    assert acme.live.balance == before - 20_000


def test_a_retry_joins_a_batch_that_runs_and_gets_the_201_of_a_202(narrow: Service) -> None:
    acme, before, key = organization(narrow, 100), 100, _key()
    with ThreadPoolExecutor() as pool:
        with narrow.paused("worker"):
            batch_id = acme.live.queue(_TWO, Idempotency_Key=key)
            joined = [pool.submit(acme.live.send, _TWO, Idempotency_Key=key) for _ in range(2)]
            assert acme.live.queue(_TWO, Idempotency_Key=key) == batch_id
            refusal(acme.live.send({**_TWO, "amount": 9}, Idempotency_Key=key), 422, "idempotency_key")
            assert not any(one.done() for one in joined)
        answers = [one.result() for one in joined]
    assert [(answer.status_code, _id(answer)) for answer in answers] == [(201, batch_id)] * 2
    assert _is_replay(acme.live.send(_TWO, Idempotency_Key=key, Prefer="respond-async"), answers[0])
    assert acme.live.balance == before - 20


def test_a_key_of_255_visible_characters_is_taken_to_the_last(acme: Organization) -> None:
    key = (_key() + "".join(chr(code) for code in range(0x21, 0x7F)) + "~" * 129)[:255]
    first, again, other = (acme.live.send(_TWO, Idempotency_Key=one) for one in (key, key, key[:254]))
    assert _is_replay(again, first)
    assert _is_first(other)
