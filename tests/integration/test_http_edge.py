"""The HTTP edge of one web process on a real PostgreSQL: what it answers, and logs, when something below it fails."""

import io
import re
from collections.abc import Callable, MutableMapping
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import pytest
from flask.testing import FlaskClient
from sqlalchemy import Engine
from sqlalchemy.exc import OperationalError, ProgrammingError
from sqlalchemy.exc import TimeoutError as PoolTimeout
from werkzeug.test import TestResponse

import migrations
from app.api.openapi.answers import failures
from app.postgres.connections import engine
from app.settings import settings
from app.web.application import create_app
from tests.conftest import forget_everything
from tests.deadline import until
from tests.integration import books
from tests.unit.answers import AUTHORIZED, data_of, envelope_of, errors_of

_ONE = {"recipient": "ann@example.com", "amount": 10}


@pytest.fixture
def client(own_send_path: None, monkeypatch: pytest.MonkeyPatch) -> FlaskClient:
    """Give a test an application whose calls carry a live key, and wait for no batch for long."""
    monkeypatch.setenv("POINTS_WAIT_S", "1")
    settings.cache_clear()
    client = create_app().test_client()
    key = books.make_live_key(books.make_organization(100))
    client.environ_base["HTTP_AUTHORIZATION"] = f"Bearer {key}"
    return client


def _broken(error: Exception) -> Callable[..., None]:
    def fail(*_: object, **__: object) -> None:
        raise error

    return fail


def _away() -> OperationalError:
    return OperationalError("SELECT secret", {}, Exception("secret"), connection_invalidated=True)


def _send(client: FlaskClient, **headers: str) -> TestResponse:
    dashed = {name.replace("_", "-"): value for name, value in headers.items()}
    return client.post("/v1/points/send", json=_ONE, headers=dashed)


@pytest.mark.parametrize(
    ("lost", "is_issued"),
    [
        ("is_gone", False),
        ("has_another_age", True),
        pytest.param("has_another_age", False, marks=pytest.mark.long),
    ],
)
def test_nobody_is_answered_with_another_batch_that_has_the_id_of_a_lost_one(
    client: FlaskClient, events: list[MutableMapping[str, Any]], lost: str, is_issued: bool
) -> None:
    """As after a failover to a standby that had not heard of the last commits: the ids are drawn again."""
    move = "UPDATE batches SET created_at = created_at - interval '1 microsecond'"
    with ThreadPoolExecutor() as pool:
        sent = pool.submit(_send, client)
        until(lambda: books.has_due(1))
        books.rewrite("DELETE FROM batches" if lost == "is_gone" else move)
        if is_issued:
            books.drain_all(1)
        response = sent.result()
    assert "lost this batch" in errors_of(response, 503)["service"][0]
    assert response.headers["Retry-After"] == "2"
    assert [event["batch_id"] for event in events if event["event"] == "batch_lost"] == [1]


def test_accepted_is_202_though_postgresql_has_gone_since(client: FlaskClient, monkeypatch: pytest.MonkeyPatch) -> None:
    """503 means that it may be sent again: without an idempotency key everybody would be paid twice."""
    with monkeypatch.context() as patch:
        patch.setattr("app.api.views.send.find_accepted", _broken(_away()))
        assert data_of(_send(client, Idempotency_Key="k"), 202) == {"batch_id": 1, "status": "queued"}
    books.drain_all(1)
    monkeypatch.setattr("app.api.views.send.find_accepted", _broken(_away()))
    assert errors_of(_send(client, Idempotency_Key="k"), 503)  # A replay is not known to be anything yet.


@pytest.mark.parametrize(
    ("error", "status"),
    [
        (_away(), 503),
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
    monkeypatch.setattr("app.api.auth.get_caller", _broken(error))
    [example] = failures()["fault"]["errors"]["service"]
    named = re.search(r"request id (\w+) when", example)
    assert named is not None
    response = client.get("/v1/organization", headers={"X-Request-Id": named[1]})
    assert "secret" not in f"{errors_of(response, status)} {events}"
    failure, line = events
    kind = "postgresql_out_of_reach" if status == 503 else "request_failed"
    assert (failure["event"], line["event"]) == (kind, "request")
    assert failure["request_id"] == line["request_id"] == named[1]
    assert failure["error"] == type(getattr(error, "orig", error)).__name__
    assert envelope_of(response, status) == failures()["fault" if status == 500 else "database_away"]


def test_a_body_that_is_reset_is_400(client: FlaskClient) -> None:
    class Reset(io.RawIOBase):
        def readable(self) -> bool:
            return True

        def readinto(self, _buffer: object) -> int:
            raise ConnectionResetError

    environ: dict[str, Any] = {"CONTENT_LENGTH": "1000", "wsgi.input": Reset()}
    response = client.post("/v1/points/send", content_type="application/json", environ_overrides=environ)
    assert list(errors_of(response, 400)) == ["request"]


def test_with_redis_alone_away_it_is_ready_and_says_so(client: FlaskClient) -> None:
    assert data_of(client.get("/readyz"), 200) == {"status": "ready", "postgresql": "ok", "redis": "away"}


@pytest.mark.usefixtures("broker")
def test_a_database_that_was_never_migrated_is_not_ready(
    server_url: str, scratch: Engine, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("DATABASE_URL", server_url)
    forget_everything()
    client = create_app().test_client()
    told = {"postgresql": ["PostgreSQL answers, but has no tables yet: run `points migrate`."]}
    assert errors_of(client.get("/readyz"), 503) == told
    for path in ("/v1/organization", "/v1/batches"):
        assert client.get(path, headers=AUTHORIZED).status_code == 503
    assert client.post("/v1/points/send", headers=AUTHORIZED, json=_ONE).status_code == 503
    migrations.upgrade(server_url)
    assert client.get("/readyz").status_code == 200
    engine().dispose()
