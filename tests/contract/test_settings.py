"""The settings: each moves the limit that it names, and a wrong one stops the start."""

import time
from contextlib import closing
from http.client import HTTPConnection
from pathlib import Path

import pytest

from tests.contract.calls import Organization, address, addresses, organization, refusal, success
from tests.ports import HOST, free_port
from tests.service.up import Service


@pytest.fixture
def made(narrow: Service) -> Organization:
    return organization(narrow, 2**62 - 1)


def test_recipients_max_bounds_the_recipients_of_a_batch(made: Organization) -> None:
    emails = addresses(2_001)
    refusal(made.live.verify({"recipients": emails, "amount": 1}), 400, "recipients")
    success(made.live.verify({"recipients": emails[:-1], "amount": 1}))


def test_a_reversal_takes_10_000_ids_whatever_a_batch_may_have(made: Organization) -> None:
    for count, fault in ((10_000, "transactions.0"), (10_001, "transactions")):
        body = {"transactions": list(range(1, count + 1)), "reason": "x"}
        answer = made.live.call("POST", "/v1/points/reverse/verify", json=body)
        assert next(iter(answer.json()["errors"])) == fault


def test_the_organization_tells_the_limits(made: Organization) -> None:
    told = made.live.get("/v1/organization").json()["additional_data"]["limits"]
    assert told == {"recipients": 2_000, "amount": 2**62, "body_bytes": 200_000}


def test_amount_max_bounds_the_amount_and_the_sum_must_fit_64_bits(made: Organization) -> None:
    one, two = addresses(1), addresses(2)
    success(made.live.verify({"recipients": one, "amount": 2**62}))
    refusal(made.live.verify({"recipients": one, "amount": 2**62 + 1}), 400, "amount")
    refusal(made.live.verify({"recipients": two, "amount": 2**62}), 400, "amount")
    success(made.live.verify({"recipients": two, "amount": 2**62 - 1}))


def test_points_are_counted_to_the_last_of_64_bits(made: Organization) -> None:
    body = {"recipients": addresses(2), "amount": 2**61}
    answer = made.live.verify(body)
    assert success(answer)["validated"] is False
    assert answer.json()["additional_data"]["affordable_recipients"] == 1
    data = success(made.live.send(body), 201)
    assert [one["debited"] for one in data["transactions"]] == [True, False]
    assert data["current_balance"] == made.live.balance == 2**61 - 1


def test_with_repeats_allowed_an_address_gets_a_transaction_each_time(made: Organization) -> None:
    email, before = address(), made.live.balance
    data = success(made.live.send({"recipients": [email, address(), email.upper()], "amount": 10}), 201)
    assert [one["email"] for one in data["transactions"]][::2] == [email, email.upper()]
    assert [before - one["organization"]["balance"] for one in data["transactions"]] == [10, 20, 30]
    assert made.service.register(email)["balance"] == 20


def test_body_bytes_max_bounds_the_body(made: Organization) -> None:
    headers = {"Content-Type": "application/json"}
    for length, status in ((200_000, 400), (200_001, 413)):
        answer = made.live.call("POST", "/v1/points/send", content=b" " * length, headers=headers)
        errors = refusal(answer, status, "body")
    assert errors == {"body": ["The body must have at most 200000 bytes, but has more."]}
    refusal(made.development.call("POST", "/v1/sandbox/reset", content=b" " * 200_001), 413, "body")  # Nobody reads it.


def test_keep_alive_s_is_how_long_a_connection_is_kept_for_its_next_call(narrow: Service) -> None:
    connection = HTTPConnection(HOST, narrow.port, timeout=30)
    with closing(connection):
        connection.request("GET", "/healthz")
        answered = time.monotonic()
        response = connection.getresponse()
        assert response.headers["Connection"] == "keep-alive"
        response.read()
        assert connection.sock is not None, "the answer closed the connection"
        assert connection.sock.recv(1) == b"", "something came without a call"
        assert 2 < time.monotonic() - answered < 20


def test_sandbox_balance_is_what_a_new_organization_starts_with(made: Organization, acme: Organization) -> None:
    assert made.development.balance == 77
    assert success(acme.development.get("/v1/organization"))["last_refill"] == 1_000_000


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("POINTS_WAIT_S", "soon"),
        ("POINTS_RECIPIENTS_MAX", "0"),
        ("POINTS_RATE_LIMIT", "many"),
        ("DATABASE_URL", "mysql://points:hush@127.0.0.1/points"),
    ],
)
def test_a_wrong_setting_stops_the_start_by_name(narrow: Service, tmp_path: Path, name: str, value: str) -> None:
    ports = ["--port", str(free_port()), "--flower-port", str(free_port())]
    done = narrow.run("up", *ports, "--data-dir", str(tmp_path), **{name: value})
    assert done.returncode == 1
    assert f"{name} is wrong" in done.stderr
    assert not any(word in done.stderr for word in ("Traceback", "hush"))
