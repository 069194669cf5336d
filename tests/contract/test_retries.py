"""Retries: one idempotency key is one batch, or whatever else is made, whoever asks and however often."""

import json
import re
import uuid
from concurrent.futures import ThreadPoolExecutor
from datetime import UTC, datetime, timedelta
from typing import Any

import httpx
import pytest

from tests.contract.calls import Key, Organization, address, addresses, nothing_changes, organization, refusal, success
from tests.contract.described import description
from tests.contract.platform import platform
from tests.deadline import until
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


# --- All else that is made --------------------------------------------------------------------------------------------

_PERSON = {"email": "ann@example.com", "first_name": "Ann", "last_name": "X"}
_NOWHERE = {"url": "http://127.0.0.1:1024/"}
# What each call sends, with an address of its own, and what makes it another body.
_MADE: dict[str, tuple[str, dict[str, Any] | None, dict[str, Any]]] = {
    "an organization": ("platform/organizations", {"name": "Acme", "balance": 5}, {"balance": 6}),
    "a refill": ("platform/organizations/{id}/refills", {"amount": 5}, {"sandbox": True}),
    "a key": ("platform/organizations/{id}/keys", {"name": "Till"}, {"sandbox": True}),
    "a member": ("platform/organizations/{id}/members", _PERSON | {"role": "viewer"}, {"role": "admin"}),
    "a user": ("platform/users", _PERSON, {"first_name": "Ada"}),
    "many users": ("platform/users/bulk", {"users": [_PERSON, {}]}, {"users": [_PERSON]}),
    "a user of the sandbox": ("sandbox/users", _PERSON, {"first_name": "Ada"}),
    "a webhook": ("webhooks", _NOWHERE, {"types": ["ping"]}),
    "a secret": ("webhooks/{webhook}/rotate", None, {}),
    "a link": ("platform/organizations/{id}/members/{member}/link", None, {}),
}


@pytest.fixture(scope="module")
def made(service: Service) -> Organization:
    return organization(service, 100)


@pytest.fixture(scope="module")
def ids(made: Organization) -> dict[str, int]:
    webhook = success(_post(made, "webhooks", _NOWHERE), 201)
    body = _PERSON | {"role": "viewer"}
    member = success(_post(made, f"platform/organizations/{made.id}/members", body), 201)
    return {"id": made.id, "webhook": webhook["id"], "member": member["id"]}


def _post(made: Organization, path: str, body: Any, key: str | None = None) -> httpx.Response:
    who: Key = platform(made.service) if path.startswith("platform/") else made.development
    headers = {} if key is None else {"Idempotency-Key": key}
    return who.call("POST", f"/v1/{path}", headers=headers, **({} if body is None else {"json": body}))


@pytest.mark.parametrize("what", _MADE)
def test_what_is_made_is_made_once_for_its_key_and_told_again_with_its_secret(
    made: Organization, ids: dict[str, int], what: str
) -> None:
    path, body, change = _MADE[what]
    path, key = path.format(**ids), _key()
    body = json.loads(json.dumps(body).replace("ann@example.com", address()))
    with ThreadPoolExecutor(4) as pool:
        answers = list(pool.map(lambda _: _post(made, path, body, key), range(4)))
    [first] = [answer for answer in answers if "Idempotency-Replayed" not in answer.headers]
    success(first, first.status_code)
    told = {(answer.status_code, answer.content, answer.headers.get("Location")) for answer in answers}
    assert told == {(first.status_code, first.content, first.headers.get("Location"))}
    if body is not None:
        refusal(_post(made, path, body | change, key), 422, "idempotency_key")
        assert _post(made, path, dict(reversed(body.items())), key).content == first.content
    if "@" not in f"{body}":  # Of an address there is one.
        another = _post(made, path, body, _key())
        assert another.is_success
        assert another.content != first.content


def test_of_two_bulks_at_once_with_one_key_and_other_bodies_one_registers_nobody(made: Organization) -> None:
    key, ours = _key(), platform(made.service)
    people = [[_PERSON | {"email": email} for email in addresses(500)] for _ in range(2)]
    with ThreadPoolExecutor(2) as pool:
        answers = list(pool.map(lambda users: _post(made, "platform/users/bulk", {"users": users}, key), people))
    assert sorted(answer.status_code for answer in answers) == [200, 422]
    for users, answer in zip(people, answers, strict=True):
        if answer.status_code == 422:
            refusal(answer, 422, "idempotency_key")
        for one in (users[0], users[-1]):
            found = success(ours.get("/v1/platform/users", email=one["email"]))["users"]
            assert len(found) == answer.is_success


def test_a_body_that_is_at_fault_by_now_gets_the_answer_of_when_it_was_good(made: Organization) -> None:
    path, key, end = f"platform/organizations/{made.id}/keys", _key(), datetime.now(UTC) + timedelta(seconds=4)
    body = {"name": "Till", "expires_at": end.isoformat()}
    first = _post(made, path, body, key)
    success(first, 201)
    until(lambda: datetime.now(UTC) > end, every_s=0.1)
    again = _post(made, path, body, key)
    assert (again.status_code, again.content, again.headers["Idempotency-Replayed"]) == (201, first.content, "true")
    for other_key, other in ((None, body), (_key(), body), (key, body | {"name": "Shop"}), (key, body | {"name": ""})):
        refusal(_post(made, path, other, other_key), 400, *(["name"] if other["name"] == "" else []), "expires_at")
    refusal(_post(made, path, {"name": "Till"}, key), 422, "idempotency_key")


def test_a_call_that_makes_nothing_refuses_an_idempotency_key(made: Organization) -> None:
    refusing = [
        (verb, path)
        for path, verbs in description(made.service.url)["paths"].items()
        for verb, operation in verbs.items()
        if path.startswith("/v1/") and "#/components/parameters/Idempotency-Key" not in str(operation["parameters"])
    ]
    assert {verb for verb, _ in refusing} == {"get", "post", "patch", "delete"}
    for verb, path in refusing:
        who: Key = platform(made.service) if path.startswith("/v1/platform/") else made.development
        answer = who.call(verb.upper(), re.sub(r"{\w+}", "1", path), headers={"Idempotency-Key": "k"})
        refusal(answer, 400, "idempotency_key")
