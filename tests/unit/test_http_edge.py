"""The HTTP edge where no endpoint is reached, or none can answer: still the envelope and its headers."""

from collections.abc import MutableMapping
from hashlib import sha256
from typing import Any

import pytest
from flask.testing import FlaskClient
from prometheus_client import REGISTRY
from sqlalchemy.exc import OperationalError, ProgrammingError
from sqlalchemy.exc import TimeoutError as PoolTimeout

from app.metrics.record import current_record
from tests.unit.answers import AUTHORIZED, data_of, errors_of
from tests.unit.conftest import Calling


@pytest.mark.parametrize("path", ["/", "/v1", "/v1/nothing", "/v1/points/send/", "/v1//points/send", "/v1/POINTS/send"])
@pytest.mark.parametrize("method", ["GET", "POST", "DELETE"])
def test_a_path_that_is_none_is_404_and_never_a_redirect(client: FlaskClient, method: str, path: str) -> None:
    response = client.open(path, method=method)
    assert errors_of(response, 404) == {"path": ["There is nothing at this path; /docs shows what there is."]}


@pytest.mark.parametrize("batch_id", ["x", "1.5", "-1", "+1", "0x1", "", "1/2", "1/", "٤", "1_0", " 1"])
def test_what_cannot_be_the_id_of_a_batch_is_404(client: FlaskClient, batch_id: str) -> None:
    assert list(errors_of(client.get(f"/v1/batches/{batch_id}"), 404)) == ["path"]


@pytest.mark.usefixtures("calling")
@pytest.mark.parametrize("batch_id", [2**63, 10**30, 10**4_000])
def test_an_id_beyond_64_bits_is_404_without_asking_the_database(client: FlaskClient, batch_id: int) -> None:
    assert list(errors_of(client.get(f"/v1/batches/{batch_id}", headers=AUTHORIZED), 404)) == ["batch"]


@pytest.mark.parametrize("method", ["GET", "HEAD", "PUT", "PATCH", "DELETE", "OPTIONS", "TRACE", "BREW"])
@pytest.mark.parametrize("path", ["/v1/points/verify", "/v1/points/send"])
def test_another_method_is_405_and_the_allowed_one_is_named(client: FlaskClient, method: str, path: str) -> None:
    response = client.open(path, method=method)
    assert response.status_code == 405
    assert response.headers["Allow"] == "POST"
    if method != "HEAD":
        assert list(errors_of(response, 405)) == ["method"]


@pytest.mark.parametrize("method", ["POST", "OPTIONS", "PUT", "DELETE"])
@pytest.mark.parametrize("path", ["/healthz", "/v1/organization", "/v1/transactions/1"])
def test_what_is_read_takes_no_method_that_writes(client: FlaskClient, method: str, path: str) -> None:
    response = client.open(path, method=method)
    assert list(errors_of(response, 405)) == ["method"]
    assert set(response.headers["Allow"].split(", ")) == {"GET", "HEAD"}


@pytest.mark.parametrize("accept", ["text/html", "application/xml;q=1", "image/*, */*;q=0", "nonsense", ""])
def test_the_answer_is_json_whatever_accept_says(client: FlaskClient, accept: str) -> None:
    assert errors_of(client.get("/v1/nothing", headers={"Accept": accept}), 404)
    assert data_of(client.get("/healthz", headers={"Accept": accept}), 200) == {"status": "ok"}


@pytest.mark.parametrize("given", ["a", "6f1c2a0e-7b0e", "x" * 128, "Root=1-67891233-abcdef", "a.b_c:d/e+f@g"])
def test_a_sane_request_id_of_the_caller_comes_back(client: FlaskClient, given: str) -> None:
    for path in ("/healthz", "/v1/nothing"):
        assert client.get(path, headers={"X-Request-Id": given}).headers["X-Request-Id"] == given


@pytest.mark.parametrize(
    "given",
    [None, "", "x" * 129, "a b", "ä", "<script>", 'a"b', "a,b", "a;b", "pts_live_abc", "x:pts_dev_abc"],
)
def test_any_other_request_id_is_replaced_by_one_of_ours(client: FlaskClient, given: str | None) -> None:
    headers = {} if given is None else {"X-Request-Id": given}
    ids = {client.get("/healthz", headers=headers).headers["X-Request-Id"] for _ in range(2)}
    assert len(ids) == 2
    assert given not in ids


@pytest.mark.parametrize(
    ("method", "path"),
    [("POST", "/v1/points/verify"), ("POST", "/v1/points/send"), ("GET", "/v1/organization"), ("GET", "/v1/batches/1")],
)
def test_503_says_when_to_try_again_while_postgresql_is_away(client: FlaskClient, method: str, path: str) -> None:
    response = client.open(path, method=method, headers=AUTHORIZED)
    assert list(errors_of(response, 503)) == ["service"]
    assert 1 <= int(response.headers["Retry-After"]) <= 60


def test_readyz_is_503_and_names_what_is_away(client: FlaskClient) -> None:
    assert set(errors_of(client.get("/readyz"), 503)) == {"postgresql", "redis"}


@pytest.mark.usefixtures("no_rows")
def test_with_redis_alone_away_it_is_ready_and_says_so(client: FlaskClient) -> None:
    assert data_of(client.get("/readyz"), 200) == {"status": "ready", "postgresql": "ok", "redis": "away"}


def test_of_what_machines_ask_every_few_seconds_only_what_goes_wrong_has_a_line(
    client: FlaskClient, events: list[MutableMapping[str, Any]]
) -> None:
    for path in ("/healthz", "/readyz"):
        client.get(path)
    lines = [(event["route"], event["status"]) for event in events if event["event"] == "request"]
    assert lines == [("/readyz", 503)]


def test_how_long_a_request_took_is_counted_and_logged_in_seconds(
    client: FlaskClient, monkeypatch: pytest.MonkeyPatch, events: list[MutableMapping[str, Any]]
) -> None:
    def counted() -> float:
        labels = {"method": "GET", "route": "/v1/organization"}
        return REGISTRY.get_sample_value("points_request_seconds_sum", labels) or 0.0

    before, moments = counted(), iter((10.0, 10.25))
    monkeypatch.setattr("app.web.recording.perf_counter", lambda: next(moments))
    errors_of(client.get("/v1/organization"), 401)
    assert [event["seconds"] for event in events if event["event"] == "request"] == [0.25]
    assert counted() - before == pytest.approx(0.25)


def test_healthz_is_200_while_everything_else_is_away(client: FlaskClient) -> None:
    assert data_of(client.get("/healthz"), 200) == {"status": "ok"}


@pytest.mark.usefixtures("calling")
@pytest.mark.parametrize(
    ("error", "status"),
    [
        (OperationalError("SELECT secret", {}, Exception("secret")), 503),
        (PoolTimeout("secret"), 503),
        (ProgrammingError("SELECT secret", {}, Exception("secret")), 500),
        (RuntimeError("secret"), 500),
        (AssertionError("secret"), 500),
    ],
    ids=["server away", "no connection free", "wrong statement", "error nobody thought of", "broken promise"],
)
def test_an_error_below_the_edge_is_answered_and_logged_without_its_values(
    client: FlaskClient,
    error: Exception,
    status: int,
    monkeypatch: pytest.MonkeyPatch,
    events: list[MutableMapping[str, Any]],
) -> None:
    def fail(*_: object) -> None:
        raise error

    monkeypatch.setattr("app.api.auth.get_caller", fail)
    response = client.get("/v1/organization", headers=AUTHORIZED | {"X-Request-Id": "req-17"})
    [sentence] = errors_of(response, status)["service"]
    assert "secret" not in f"{sentence} {events}"
    failure, line = events
    assert (failure["event"], line["event"]) == (
        ("postgresql_out_of_reach", "request") if status == 503 else ("request_failed", "request")
    )
    assert failure["request_id"] == line["request_id"] == "req-17"
    assert failure["error"] == type(getattr(error, "orig", error)).__name__
    assert ("req-17" in sentence) is (status == 500)


def test_an_organization_is_shown_as_the_mode_of_the_key_sees_it(client: FlaskClient, calling: Calling) -> None:
    calling.change(balance=77, name="Acme & Söhne")
    data = data_of(client.get("/v1/organization", headers=AUTHORIZED), 200)
    assert (data["id"], data["name"], data["balance"]) == (7, "Acme & Söhne", 77)


def test_an_id_with_an_address_in_it_is_logged_as_its_hash(client: FlaskClient) -> None:
    traced = []
    for given in ("ann@example.com", "ann"):
        with client:
            assert client.get("/healthz", headers={"X-Request-Id": given}).headers["X-Request-Id"] == given
            traced.append(current_record().trace_id)
    assert traced == [sha256(b"ann@example.com").hexdigest()[:32], "ann"]
