"""The HTTP edge where no endpoint is reached, or none can answer: still the envelope, its headers, and one line."""

from collections.abc import MutableMapping
from hashlib import sha256
from typing import Any

import pytest
from flask.testing import FlaskClient
from prometheus_client import REGISTRY

from app.api.openapi.calls import REFUSALS
from app.api.openapi.failures import EXAMPLES
from app.metrics.record import current_record
from tests.unit.answers import AUTHORIZED, data_of, envelope_of, errors_of


@pytest.mark.parametrize("given", ["a", "6f1c2a0e-7b0e", "x" * 128, "Root=1-67891233-abcdef", "a.b_c:d/e+f@g"])
def test_a_sane_request_id_of_the_caller_comes_back(client: FlaskClient, given: str) -> None:
    for path in ("/healthz", "/v1/nothing"):
        assert client.get(path, headers={"X-Request-Id": given}).headers["X-Request-Id"] == given


@pytest.mark.parametrize("given", ["x" * 129, "a b", "<script>", "a;b", "pts_live_abc", "x:pts_dev_abc"])
def test_any_other_request_id_is_replaced_by_one_of_ours(client: FlaskClient, given: str) -> None:
    ids = {client.get("/healthz", headers={"X-Request-Id": given}).headers["X-Request-Id"] for _ in range(2)}
    assert len(ids - {given}) == 2


@pytest.mark.parametrize(
    ("method", "path"),
    [("POST", "/v1/points/verify"), ("POST", "/v1/points/send"), ("GET", "/v1/organization"), ("GET", "/v1/batches/1")],
)
def test_503_says_when_to_try_again_while_postgresql_is_away(client: FlaskClient, method: str, path: str) -> None:
    response = client.open(path, method=method, headers=AUTHORIZED)
    assert envelope_of(response, 503) == EXAMPLES["database_away"]
    assert set(REFUSALS["Away"]["headers"]) <= set(response.headers.keys())
    assert 1 <= int(response.headers["Retry-After"]) <= 60
    # A request that cannot be anybody's shall not cost a connection either.
    assert list(errors_of(client.open(path, method=method), 401)) == ["authorization"]


def test_of_what_machines_ask_every_few_seconds_only_what_goes_wrong_has_a_line(
    client: FlaskClient, events: list[MutableMapping[str, Any]]
) -> None:
    assert data_of(client.get("/healthz"), 200) == {"status": "ok"}
    assert envelope_of(client.get("/readyz"), 503) == EXAMPLES["not_ready"]
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


def test_an_id_with_an_address_in_it_is_logged_as_its_hash(client: FlaskClient) -> None:
    traced = []
    for given in ("ann@example.com", "ann"):
        with client:
            assert client.get("/healthz", headers={"X-Request-Id": given}).headers["X-Request-Id"] == given
            traced.append(current_record().trace_id)
    assert traced == [sha256(b"ann@example.com").hexdigest()[:32], "ann"]
