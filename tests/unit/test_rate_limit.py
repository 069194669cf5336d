"""The rate limit: per key, before the body is read, and open when Redis is away."""

import time
from types import SimpleNamespace
from typing import Any

import pytest
from fakeredis import FakeRedis, FakeServer
from flask.testing import FlaskClient

from app.api.limits import retry_after_s
from app.values.keys import hash_key, new_key
from app.web.application import create_app
from tests.unit.answers import AUTHORIZED, KEY, data_of, errors_of
from tests.unit.bodies import body_with

pytestmark = pytest.mark.usefixtures("calling")

_PATH = "/v1/organization"


@pytest.fixture
def client(monkeypatch: pytest.MonkeyPatch) -> FlaskClient:
    """Give a test the application, with a limit that is soon reached and not soon over."""
    monkeypatch.setenv("POINTS_RATE_LIMIT", "3/day")
    return create_app().test_client()


def use_up(client: FlaskClient) -> None:
    for _ in range(3):
        data_of(client.get(_PATH, headers=AUTHORIZED), 200)


@pytest.mark.usefixtures("redis")
def test_who_calls_too_often_is_told_when_to_come_again(client: FlaskClient) -> None:
    use_up(client)
    response = client.get(_PATH, headers=AUTHORIZED)
    [sentence] = errors_of(response, 429)["rate_limit"]
    assert "3/day" in sentence
    assert 1 <= int(response.headers["Retry-After"]) <= 86_400


@pytest.mark.usefixtures("redis")
@pytest.mark.parametrize(("limit", "window_s"), [("3/second", 1), ("3/minute", 60), ("3/hour", 3_600)])
@pytest.mark.parametrize("second", [1_000_000.0, 1_000_000.001, 1_000_000.999])
def test_nobody_is_told_to_wait_longer_than_the_limit_lasts(
    monkeypatch: pytest.MonkeyPatch, limit: str, window_s: int, second: float
) -> None:
    monkeypatch.setenv("POINTS_RATE_LIMIT", limit)
    monkeypatch.setattr("time.time", lambda: second)
    client = create_app().test_client()
    use_up(client)
    response = client.get(_PATH, headers=AUTHORIZED)
    assert response.status_code == 429
    assert 1 <= int(response.headers["Retry-After"]) <= window_s


def test_nobody_is_told_to_come_again_at_once_though_the_limit_has_just_let_go() -> None:
    minute = SimpleNamespace(get_expiry=lambda: 60)
    limiter: Any = SimpleNamespace(current_limit=SimpleNamespace(reset_at=int(time.time()) - 1, limit=minute))
    assert retry_after_s(limiter) == 1


@pytest.mark.usefixtures("redis")
def test_one_key_does_not_use_up_the_limit_of_another(client: FlaskClient) -> None:
    use_up(client)
    other = {"Authorization": f"Bearer {new_key(sandbox=False).text}"}
    data_of(client.get(_PATH, headers=other), 200)
    errors_of(client.get(_PATH, headers=AUTHORIZED), 429)


@pytest.mark.usefixtures("redis")
def test_the_calls_of_a_key_are_counted_together_on_every_path_and_in_every_process(client: FlaskClient) -> None:
    data_of(client.post("/v1/points/verify", json=body_with(), headers=AUTHORIZED), 200)
    data_of(client.get(_PATH, headers=AUTHORIZED), 200)
    another_process = create_app().test_client()
    errors_of(another_process.get("/v1/batches/99999999999999999999", headers=AUTHORIZED), 404)
    for one in (client, another_process):
        errors_of(one.get(_PATH, headers=AUTHORIZED), 429)


@pytest.mark.usefixtures("redis")
@pytest.mark.parametrize("content_type", ["text/plain", "application/json"])
def test_the_limit_is_checked_before_the_body_is_read(client: FlaskClient, content_type: str) -> None:
    use_up(client)
    response = client.post("/v1/points/send", data=b"{" * 10_000, content_type=content_type, headers=AUTHORIZED)
    assert list(errors_of(response, 429)) == ["rate_limit"]


@pytest.mark.usefixtures("redis")
def test_paths_without_a_key_and_calls_without_a_usable_one_are_not_limited(client: FlaskClient) -> None:
    use_up(client)
    for _ in range(10):
        data_of(client.get("/healthz", headers=AUTHORIZED), 200)
        errors_of(client.get(_PATH, headers={"Authorization": "Bearer nonsense"}), 401)


def test_the_limit_is_open_while_redis_is_away(client: FlaskClient) -> None:
    for _ in range(10):
        data_of(client.get(_PATH, headers=AUTHORIZED), 200)


@pytest.mark.usefixtures("redis")
def test_a_setting_turns_the_limit_off(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("POINTS_RATE_LIMIT", "off")
    client = create_app().test_client()
    for _ in range(60):
        data_of(client.get(_PATH, headers=AUTHORIZED), 200)


@pytest.mark.usefixtures("redis")
def test_without_a_setting_a_key_may_make_fifty_calls_a_second(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("time.time", lambda: 1_000_000.0)
    client = create_app().test_client()
    statuses = [client.get(_PATH, headers=AUTHORIZED).status_code for _ in range(51)]
    assert statuses == [200] * 50 + [429]


@pytest.mark.parametrize("limit", ["1/second", "100/minute", "5 per hour", "7/day", "1 / second"])
def test_every_spelling_that_the_settings_admit_is_one_the_limit_understands(
    limit: str, redis: FakeServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("POINTS_RATE_LIMIT", limit)
    client = create_app().test_client()
    data_of(client.get(_PATH, headers=AUTHORIZED), 200)
    counted = [key for key in FakeRedis(server=redis).keys() if b"points" in key]  # noqa: SIM118
    assert counted
    assert not any(AUTHORIZED["Authorization"].split()[1].encode() in key for key in counted)


@pytest.mark.usefixtures("redis")
def test_the_hash_of_a_key_over_the_limit_stands_in_no_log(
    client: FlaskClient, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(0)
    use_up(client)
    errors_of(client.get(_PATH, headers=AUTHORIZED), 429)
    assert hash_key(KEY).hex() not in caplog.text


def test_a_call_without_a_key_is_no_error_in_the_log_while_redis_is_away(
    client: FlaskClient, caplog: pytest.LogCaptureFixture
) -> None:
    data_of(client.get(_PATH, headers=AUTHORIZED), 200)  # Finds out that Redis is away.
    data_of(client.get("/healthz"), 200)
    errors_of(client.get(_PATH), 401)
    assert [record.message for record in caplog.records if record.levelname == "ERROR"] == []
