"""The rate limit beyond what the contract shows: its windows, its spellings, and that it is open without Redis."""

import time
from types import SimpleNamespace
from typing import Any

import pytest
from fakeredis import FakeRedis, FakeServer
from flask.testing import FlaskClient

from app.api.openapi.answers import failures, refusals
from app.api.rate_limit import retry_after_s
from app.settings import settings
from app.values.key_hashes import hash_key
from app.web.application import create_app
from tests.integration import books
from tests.unit.answers import data_of, envelope_of, errors_of

_PATH = "/v1/organization"


@pytest.fixture
def key(database: None) -> str:
    return books.make_live_key(books.make_organization())


@pytest.fixture
def redis(monkeypatch: pytest.MonkeyPatch) -> FakeServer:
    """Let the limits of a test be counted in one imagined Redis, whichever process counts."""
    server = FakeServer()
    monkeypatch.setattr("app.api.rate_limit.redis_client", lambda *_, **__: FakeRedis(server=server))
    return server


def process(key: str) -> FlaskClient:
    """Return a web process that is called with this key."""
    settings.cache_clear()
    client = create_app().test_client()
    client.environ_base["HTTP_AUTHORIZATION"] = f"Bearer {key}"
    return client


@pytest.mark.usefixtures("redis")
@pytest.mark.parametrize(
    ("limit", "window_s", "second"),
    [
        ("3/second", 1, 1_000_000.0),
        ("3/second", 1, 1_000_000.999),
        ("3/minute", 60, 1_000_000.0),
        pytest.param("3/hour", 3_600, 1_000_000.001, marks=pytest.mark.long),
    ],
)
def test_nobody_is_told_to_wait_longer_than_the_limit_lasts(
    key: str, monkeypatch: pytest.MonkeyPatch, limit: str, window_s: int, second: float
) -> None:
    monkeypatch.setenv("POINTS_RATE_LIMIT", limit)
    monkeypatch.setattr("time.time", lambda: second)
    client = process(key)
    for _ in range(3):
        data_of(client.get(_PATH), 200)
    response = client.get(_PATH)
    assert limit in errors_of(response, 429)["rate_limit"][0]
    assert 1 <= int(response.headers["Retry-After"]) <= window_s


def test_nobody_is_told_to_come_again_at_once_though_the_limit_has_just_let_go() -> None:
    minute = SimpleNamespace(get_expiry=lambda: 60)
    limiter: Any = SimpleNamespace(current_limit=SimpleNamespace(reset_at=int(time.time()) - 1, limit=minute))
    assert retry_after_s(limiter) == 1


@pytest.mark.usefixtures("redis")
def test_the_calls_of_a_key_are_counted_together_on_every_path_in_every_process_and_its_hash_is_in_no_log(
    key: str, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(0)
    monkeypatch.setenv("POINTS_RATE_LIMIT", "3/day")
    one, other = process(key), process(key)
    data_of(one.post("/v1/points/verify", json={"recipient": "a@example.com", "amount": 1}), 200)
    answer = one.get(_PATH)
    data_of(answer, 200)
    told = {"RateLimit": '"key";r=1', "RateLimit-Policy": '"key";q=3;w=86400'}
    assert {name: answer.headers[name] for name in told} == told
    errors_of(other.get("/v1/batches/99999999999999999999"), 404)
    for client in (one, other):
        refused = client.get(_PATH)
        assert envelope_of(refused, 429)["additional_data"] == failures()["too_many_calls"]["additional_data"]
        assert set(refusals()["TooManyCalls"].headers) <= set(refused.headers.keys())
    assert hash_key(key).hex() not in caplog.text


@pytest.mark.usefixtures("redis")
@pytest.mark.parametrize(
    ("limit", "policy"),
    [
        ("1/second", "q=1;w=1"),
        ("100/minute", "q=100;w=60"),
        ("5 per hour", "q=5;w=3600"),
        ("7/day", "q=7;w=86400"),
        ("1 / second", "q=1;w=1"),
    ],
)
def test_every_spelling_that_the_settings_admit_is_one_the_limit_understands(
    key: str, limit: str, policy: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("POINTS_RATE_LIMIT", limit)
    answer = process(key).get(_PATH)
    data_of(answer, 200)
    assert answer.headers["RateLimit-Policy"] == f'"key";{policy}'
    assert answer.headers["RateLimit"] == f'"key";r={int(policy[2:].partition(";")[0]) - 1}'


def test_the_limit_is_open_while_redis_is_away_and_a_call_without_a_key_is_no_error_then(
    key: str, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    monkeypatch.setenv("POINTS_RATE_LIMIT", "3/day")
    client = process(key)
    for _ in range(10):
        answer = client.get(_PATH)
        data_of(answer, 200)
        assert answer.headers["RateLimit"] == '"key";r=3'  # Nothing was counted.
    healthy = client.get("/healthz")
    data_of(healthy, 200)
    assert "RateLimit" not in healthy.headers
    stranger = client.get(_PATH, headers={"Authorization": ""})
    errors_of(stranger, 401)
    assert stranger.headers["RateLimit"] == '"key";r=3'
    assert [record.message for record in caplog.records if record.levelname == "ERROR"] == []
