"""The view of send: what it hands on, how long it waits, and which answer it gives."""

from typing import Any

import pytest
from flask.testing import FlaskClient
from prometheus_client import REGISTRY
from werkzeug.test import TestResponse

from app.api import create_app
from tests.unit import rows
from tests.unit.answers import AUTHORIZED, data_of, envelope_of, errors_of
from tests.unit.bodies import body_with
from tests.unit.conftest import Calling
from tests.unit.house import House


def send(client: FlaskClient, *, prefer: list[str] | None = None, **fields: Any) -> TestResponse:
    headers = [*AUTHORIZED.items(), *(("Prefer", value) for value in prefer or [])]
    return client.post("/v1/points/send", json=body_with(**fields), headers=headers)


def test_a_batch_that_is_issued_while_somebody_waits_is_201(client: FlaskClient, house: House) -> None:
    house.after_the_wait = rows.issued_batch()
    response = send(client, label="Spring")
    data = data_of(response, 201)
    assert list(data) == ["transactions", "amount", "current_balance"]
    assert [body["id"] for body in data["transactions"]] == [1001, 1002, 1003]
    assert envelope_of(response, 201)["additional_data"]["batch_id"] == 42
    assert "Idempotency-Replayed" not in response.headers
    [(request, idempotency_key)] = house.accepted
    assert (request.emails, request.amount, request.label) == (["a@example.com"], 10, "Spring")
    assert idempotency_key is None


def test_rows_that_were_read_by_the_way_are_not_read_again(
    client: FlaskClient, house: House, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delattr("app.batches.find_accepted")
    house.after_the_wait, house.reads_by_the_way = rows.issued_batch(), True
    assert len(data_of(send(client), 201)["transactions"]) == 3


def test_a_wait_that_runs_out_is_202_and_says_where_to_look(client: FlaskClient, house: House) -> None:
    response = send(client)
    assert data_of(response, 202) == {"batch_id": 42, "status": "queued"}
    assert response.headers["Location"] == "/v1/batches/42"
    assert 1 <= int(response.headers["Retry-After"]) <= 60
    assert house.waited_s == [25]


def test_a_wait_is_counted_in_seconds_from_the_batch_accepted_to_its_answer(
    client: FlaskClient, house: House, monkeypatch: pytest.MonkeyPatch
) -> None:
    def counted() -> float:
        return REGISTRY.get_sample_value("points_send_wait_seconds_sum", {"status": "202"}) or 0.0

    before, moments = counted(), iter((10.0, 10.75))
    monkeypatch.setattr("app.api.record.perf_counter", lambda: next(moments))
    house.accepted_at = 10.25
    data_of(send(client), 202)
    assert counted() - before == pytest.approx(0.5)


def test_the_wait_is_a_setting(house: House, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("POINTS_WAIT_S", "3.5")
    send(create_app().test_client())
    assert house.waited_s == [3.5]


def test_a_batch_issued_in_the_last_moment_is_201_though_nobody_was_woken(client: FlaskClient, house: House) -> None:
    house.batch = rows.issued_batch()
    assert data_of(send(client), 201)


@pytest.mark.parametrize(
    "prefer",
    [
        ["respond-async"],
        ["Respond-Async"],
        [" respond-async "],
        ["respond-async, wait=10"],
        ["return=minimal,respond-async"],
        ["respond-async; foo=bar"],
        ["return=minimal", "respond-async"],
    ],
)
def test_who_prefers_not_to_wait_gets_202_at_once(client: FlaskClient, house: House, prefer: list[str]) -> None:
    house.after_the_wait = rows.issued_batch()
    response = send(client, prefer=prefer)
    assert data_of(response, 202) == {"batch_id": 42, "status": "queued"}
    assert response.headers["Location"] == "/v1/batches/42"
    assert house.waited_s == []
    assert len(house.accepted) == 1


@pytest.mark.parametrize("prefer", [[""], ["wait=10"], ["respond-asynchronously"], ["no-respond-async"], ["respond"]])
def test_any_other_preference_changes_nothing(client: FlaskClient, house: House, prefer: list[str]) -> None:
    house.after_the_wait = rows.issued_batch()
    assert data_of(send(client, prefer=prefer), 201)


@pytest.mark.parametrize(
    ("flags", "words"),
    [
        ({"is_disabled": True}, "disabled"),
        ({"is_suspended": True}, "suspended"),
        ({"is_disabled": True, "is_suspended": True}, "disabled"),
    ],
)
def test_an_organization_that_may_not_issue_is_403_and_nothing_is_accepted(
    client: FlaskClient, house: House, calling: Calling, flags: dict[str, bool], words: str
) -> None:
    calling.change(**flags)
    [sentence] = errors_of(send(client), 403)["organization"]
    assert f" is {words} " in sentence
    assert house.accepted == []


@pytest.mark.parametrize("words", ["disabled", "suspended"])
def test_a_batch_that_the_worker_refused_is_403(client: FlaskClient, house: House, words: str) -> None:
    house.after_the_wait = rows.queued_batch(status="refused", refusal=f"organization_{words}")
    [sentence] = errors_of(send(client), 403)["organization"]
    assert f" is {words} " in sentence


def test_a_request_with_faults_accepts_nothing(client: FlaskClient, house: House) -> None:
    assert set(errors_of(send(client, recipients=["a@example.com", "no"], amount=0), 400)) == {"recipients.1", "amount"}
    assert house.accepted == []
