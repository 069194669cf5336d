"""Retries of a send: what an idempotency key may be, and what a second call with the same one gets."""

import pytest
from flask.testing import FlaskClient
from werkzeug.test import TestResponse

from app.batches.accept import Acceptance
from app.batches.read import CANCELLED, ISSUED, QUEUED, REFUSED, SCHEDULED
from app.errors import IdempotencyKeyReused
from tests.unit import rows
from tests.unit.answers import AUTHORIZED, data_of, errors_of
from tests.unit.bodies import body_with
from tests.unit.conftest import Calling
from tests.unit.house import House, acceptance

VISIBLE = "".join(map(chr, range(0x21, 0x7F)))


def send(client: FlaskClient, key: str = "k-1") -> TestResponse:
    headers = AUTHORIZED | {"Idempotency-Key": key}
    return client.post("/v1/points/send", json=body_with(), headers=headers)


def known(status: str) -> Acceptance:
    return acceptance(status=status, existed=True)


@pytest.mark.parametrize("key", ["k", "K" * 255, VISIBLE, "0d4b8a0e-27cb-4f6f-9fbd-6a2bd1c4cf1b"])
def test_a_key_of_1_to_255_visible_ascii_characters_goes_with_the_batch(
    client: FlaskClient, house: House, key: str
) -> None:
    data_of(send(client, key), 202)
    assert [idempotency_key for _, idempotency_key in house.accepted] == [key]


@pytest.mark.parametrize("key", ["", " ", "a b", "a\tb", "k" * 256, "schlüssel", "\x7f", "\xa0"])
def test_any_other_key_is_400_and_accepts_nothing(client: FlaskClient, house: House, key: str) -> None:
    [sentence] = errors_of(send(client, key), 400)["idempotency_key"]
    assert sentence.startswith("The Idempotency-Key must be 1 to 255 visible ASCII characters, but ")
    assert house.accepted == []


def test_the_same_key_after_the_batch_is_done_replays_its_answer(client: FlaskClient, house: House) -> None:
    house.known["k-1"], house.batch = known(ISSUED), rows.issued_batch()
    response = send(client)
    assert data_of(response, 201)["current_balance"] == 10
    assert response.headers["Idempotency-Replayed"] == "true"
    assert (house.accepted, house.waited_s) == ([], [])  # Nothing was accepted or waited for.


@pytest.mark.parametrize("flag", ["is_disabled", "is_suspended"])
def test_a_replay_does_not_ask_whether_the_organization_may_issue_today(
    client: FlaskClient, house: House, calling: Calling, flag: str
) -> None:
    calling.change(**{flag: True})
    house.known["k-1"], house.batch = known(ISSUED), rows.issued_batch()
    response = send(client)
    first = data_of(response, 201)["transactions"][0]
    assert (first["organization"]["is_disabled"], first["organization"]["is_suspended"]) == (False, False)
    assert response.headers["Idempotency-Replayed"] == "true"


def test_a_replay_shows_points_claimed_since_as_they_were_issued(
    client: FlaskClient, house: House, monkeypatch: pytest.MonkeyPatch
) -> None:
    house.known["k-1"], house.batch = known(ISSUED), rows.issued_batch()
    monkeypatch.setattr("app.batches.read.transactions_of", lambda *_: [rows.transaction(claimed=True)])
    [body] = data_of(send(client), 201)["transactions"]
    assert (body["credited"], body["allocated"], body["recipient"]) == (False, False, None)


def test_the_same_key_while_the_batch_runs_joins_it_and_never_runs_it_twice(client: FlaskClient, house: House) -> None:
    house.known["k-1"], house.after_the_wait = known(QUEUED), rows.issued_batch()
    response = send(client)
    assert data_of(response, 201)["amount"] == 60
    assert "Idempotency-Replayed" not in response.headers  # It is the first answer, though two calls get it.
    assert (house.accepted, house.waited_s) == ([], [25])


def test_the_same_key_of_a_refused_batch_is_403_again(client: FlaskClient, house: House) -> None:
    house.known["k-1"] = known(REFUSED)
    house.batch = rows.queued_batch(status=REFUSED, refusal="organization_suspended")
    assert list(errors_of(send(client), 403)) == ["organization"]
    assert house.accepted == []


@pytest.mark.parametrize("status", [QUEUED, CANCELLED])
def test_a_batch_that_is_cancelled_before_or_meanwhile_is_409_and_is_not_sent_again(
    client: FlaskClient, house: House, status: str
) -> None:
    house.known["k-1"] = known(status)
    house.batch = rows.queued_batch(status=CANCELLED)
    response = send(client)
    [sentence] = errors_of(response, 409)["batch"]
    assert "was cancelled" in sentence
    assert response.json is not None
    assert response.json["additional_data"] == {"code": "batch_cancelled"}
    assert house.accepted == []


def test_the_same_key_of_a_scheduled_batch_is_202_and_waits_for_nothing(client: FlaskClient, house: House) -> None:
    house.known["k-1"] = known(SCHEDULED)
    response = send(client)
    assert data_of(response, 202) == {"batch_id": 42, "status": "scheduled"}
    assert response.headers["Location"] == "/v1/batches/42"
    assert (house.accepted, house.waited_s) == ([], [])


def test_the_same_key_with_another_body_is_422(client: FlaskClient, house: House) -> None:
    house.error = IdempotencyKeyReused()
    assert list(errors_of(send(client), 422)) == ["idempotency_key"]


def test_who_prefers_not_to_wait_still_gets_the_answer_that_is_there(client: FlaskClient, house: House) -> None:
    house.known["k-1"], house.batch = known(ISSUED), rows.issued_batch()
    headers = AUTHORIZED | {"Idempotency-Key": "k-1", "Prefer": "respond-async"}
    response = client.post("/v1/points/send", json=body_with(), headers=headers)
    assert data_of(response, 201)["current_balance"] == 10
    assert response.headers["Idempotency-Replayed"] == "true"


def test_without_a_key_two_equal_sends_are_two_batches(client: FlaskClient, house: House) -> None:
    for _ in range(2):
        client.post("/v1/points/send", json=body_with(), headers=AUTHORIZED)
    assert [key for _, key in house.accepted] == [None, None]
