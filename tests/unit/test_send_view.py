"""The view of send: what it hands on, how long it waits, and which answer it gives."""

from collections.abc import MutableMapping
from typing import Any

import pytest
from flask.testing import FlaskClient
from prometheus_client import REGISTRY
from sqlalchemy.exc import OperationalError
from werkzeug.test import TestResponse

from app.batches.read import ISSUED
from app.web.application import create_app
from tests.unit import rows
from tests.unit.answers import AUTHORIZED, data_of, envelope_of, errors_of
from tests.unit.bodies import body_with
from tests.unit.conftest import Calling
from tests.unit.house import House, acceptance


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
    monkeypatch.delattr("app.batches.read.find_accepted")
    house.after_the_wait, house.reads_by_the_way = rows.issued_batch(), True
    assert len(data_of(send(client), 201)["transactions"]) == 3


def test_a_wait_that_runs_out_is_202_and_says_where_to_look(client: FlaskClient, house: House) -> None:
    response = send(client)
    assert data_of(response, 202) == {"batch_id": 42, "status": "queued"}
    assert response.headers["Location"] == "/v1/batches/42"
    assert 1 <= int(response.headers["Retry-After"]) <= 60
    assert house.waited_s == [25]


@pytest.mark.parametrize(("had_place", "wait"), [(True, "ran_out"), (False, "no_place")])
def test_the_line_of_a_202_says_what_became_of_the_wait(
    client: FlaskClient, house: House, events: list[MutableMapping[str, Any]], had_place: bool, wait: str
) -> None:
    house.had_place = had_place
    data_of(send(client), 202)
    data_of(send(client, prefer=["respond-async"]), 202)
    house.after_the_wait = rows.issued_batch()
    data_of(send(client), 201)
    assert [event["wait"] for event in events if event["event"] == "request"] == [wait, "not_wished", None]


def test_a_wait_is_counted_in_seconds_from_the_batch_accepted_to_its_answer(
    client: FlaskClient, house: House, monkeypatch: pytest.MonkeyPatch
) -> None:
    def counted() -> float:
        return REGISTRY.get_sample_value("points_send_wait_seconds_sum", {"status": "202"}) or 0.0

    before, moments = counted(), iter((10.0, 10.75))
    monkeypatch.setattr("app.web.recording.perf_counter", lambda: next(moments))
    house.accepted_at = 10.25
    data_of(send(client), 202)
    assert counted() - before == pytest.approx(0.5)


@pytest.mark.parametrize("lost", [{"organization_id": 8}, {"created_at": rows.MOMENT.replace(microsecond=1)}])
@pytest.mark.parametrize("reads_by_the_way", [False, True])
def test_nobody_is_answered_with_another_batch_that_has_the_id_of_a_lost_one(
    client: FlaskClient, house: House, lost: dict[str, Any], reads_by_the_way: bool
) -> None:
    """As after a failover to a standby that had not heard of the last commits: the ids are drawn again."""
    house.after_the_wait, house.reads_by_the_way = rows.issued_batch(**lost), reads_by_the_way
    response = send(client)
    assert "lost this batch" in errors_of(response, 503)["service"][0]
    assert response.headers["Retry-After"] == "2"


def test_a_lost_batch_whose_id_nobody_has_is_503_too(
    client: FlaskClient, house: House, monkeypatch: pytest.MonkeyPatch, events: list[MutableMapping[str, Any]]
) -> None:
    monkeypatch.setattr("app.batches.read.find_accepted", lambda *_: None)
    assert "lost this batch" in errors_of(send(client), 503)["service"][0]
    assert [(event["event"], event["batch_id"]) for event in events if event["log_level"] == "error"] == [
        ("batch_lost", 42)
    ]


def _gone(*_: object) -> None:
    raise OperationalError("SELECT", {}, Exception("gone"), connection_invalidated=True)


def test_what_is_known_to_be_accepted_is_202_though_postgresql_has_gone_since(
    client: FlaskClient, house: House, monkeypatch: pytest.MonkeyPatch
) -> None:
    """503 means that it may be sent again: without an idempotency key everybody would be paid twice."""
    monkeypatch.setattr("app.batches.read.find_accepted", _gone)
    assert data_of(send(client), 202) == {"batch_id": 42, "status": "queued"}


def test_a_replay_that_cannot_be_read_is_503(
    client: FlaskClient, house: House, monkeypatch: pytest.MonkeyPatch
) -> None:
    house.known["k"] = acceptance(status=ISSUED, existed=True)
    monkeypatch.setattr("app.batches.read.find_accepted", _gone)
    headers = AUTHORIZED | {"Idempotency-Key": "k"}
    assert errors_of(client.post("/v1/points/send", json=body_with(), headers=headers), 503)


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


@pytest.mark.parametrize(
    "prefer",
    [
        *([""], ["wait=10"], ["respond-asynchronously"], ["no-respond-async"], ["respond"]),
        # What stands in quotes is one value (RFC 9110, 5.6.4).
        *(['handling="a, respond-async, b"'], ['handling="a\\", respond-async, b"'], ['x="respond-async"']),
    ],
)
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
