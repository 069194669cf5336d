"""Redis and the broker as a process sees them: addresses, hints, counters, and what a server that is away may cost."""

import itertools
import os
import socket
import subprocess
import sys
from collections.abc import Callable, Iterator, MutableMapping
from importlib import import_module
from types import ModuleType
from typing import Any

import pytest
from celery import Celery
from fakeredis import FakeRedis
from kombu.exceptions import OperationalError
from redis import Redis
from redis.exceptions import ReadOnlyError, RedisError
from redis.exceptions import TimeoutError as RedisTimeoutError

from app.messaging import hints, jobs, last_runs, process_redis, worker_counters
from app.messaging.broker import VISIBILITY_TIMEOUT_S, broker_settings
from app.messaging.last_runs import LastAudit
from app.messaging.process_redis import redis_client
from app.messaging.requests import Request, need_message
from app.postgres import connections
from app.settings import settings
from app.values.redis_address import Sentinels

# In a process of its own, because Celery reads its settings once. It prints how many seconds it was held up.
_SUBMIT = """
import time
from app.messaging.jobs import submit
before = time.monotonic()
assert submit(1) is False
print(time.monotonic() - before)
"""


def test_redis_is_told_when_a_message_is_to_come_again() -> None:
    found = broker_settings("redis://:hush@cache:6379/0")
    assert found["broker_url"] == "redis://:hush@cache:6379/0"
    assert found["broker_transport_options"]["visibility_timeout"] == VISIBILITY_TIMEOUT_S


def test_rabbitmq_is_asked_to_confirm_and_is_told_nothing_of_redis() -> None:
    found = broker_settings("amqps://points:hush@rabbit/points")
    assert found["broker_transport_options"]["confirm_publish"] is True
    assert "visibility_timeout" not in found["broker_transport_options"]


def test_each_sentinel_is_an_address_of_the_broker() -> None:
    found = broker_settings("sentinel://:hu%40sh@w1:1,w2/3?master=points&sentinel_password=quiet")
    assert found["broker_url"] == "sentinel://:hu%40sh@w1:1/3;sentinel://:hu%40sh@w2:26379/3"
    options = found["broker_transport_options"]
    assert options["master_name"] == "points"
    assert options["sentinel_kwargs"]["password"] == "quiet"
    assert options["sentinel_kwargs"]["socket_timeout"] == options["socket_timeout"]


def test_a_client_behind_sentinels_uses_the_database_and_the_password_of_its_address() -> None:
    with redis_client("sentinel://:hu%40sh@w1:1/3?master=points", timeout_s=1) as client:
        options = client.connection_pool.connection_kwargs
    assert (options["db"], options["password"]) == (3, "hu@sh")


def test_sentinels_without_a_password_get_none() -> None:
    found = Sentinels.of("sentinel://w1,w2/?master=points")
    assert (found.password, found.sentinel_password, found.db) == (None, None, 0)
    assert found.urls() == ["sentinel://w1:26379/0", "sentinel://w2:26379/0"]


def test_a_rabbitmq_that_accepts_and_never_answers_holds_nobody_up() -> None:
    with socket.create_server(("127.0.0.1", 0)) as silent:
        port = silent.getsockname()[1]
        done = subprocess.run(
            [sys.executable, "-c", _SUBMIT],
            env={**os.environ, "POINTS_BROKER_URL": f"amqp://points:hush@127.0.0.1:{port}/"},
            capture_output=True,
            text=True,
            check=False,
            timeout=120,
        )
    assert done.returncode == 0, done.stderr
    assert "hush" not in done.stderr
    # Twice its limit, because it is tried twice; without a limit this would not end.
    assert float(done.stdout) < 15


@pytest.fixture
def app() -> Iterator[Celery]:
    """Make an app like the service's own, whose broker is where nothing listens."""
    with Celery(set_as_current=False, amqp=jobs._Protocol) as app:
        app.add_defaults(jobs._configuration)
        yield app


def test_what_the_environment_says_to_celery_of_another_broker_means_nothing_here() -> None:
    names = ("CELERY_BROKER_URL", "CELERY_BROKER_READ_URL", "CELERY_BROKER_WRITE_URL", "CELERY_RESULT_BACKEND")
    program = (
        "from app.messaging.jobs import celery as c; print(c.conf.broker_read_url, c.conf.broker_write_url, c.backend)"
    )
    said = subprocess.run(
        [sys.executable, "-c", program],
        env={**os.environ, "REDIS_URL": "redis://ours:6379/3", **dict.fromkeys(names, "amqp://elsewhere//")},
        capture_output=True,
        text=True,
        check=True,
    ).stdout
    assert said.startswith("redis://ours:6379/3 redis://ours:6379/3 <celery.backends.base.DisabledBackend")


def test_a_process_takes_no_message_that_it_does_not_work_on(app: Celery) -> None:
    assert app.conf.worker_prefetch_multiplier == 1


def test_a_worker_never_gives_up_on_a_broker_that_is_away(app: Celery) -> None:
    assert app.conf.broker_connection_retry_on_startup is True
    assert app.conf.broker_connection_max_retries is None


def test_beat_asks_for_what_may_wait_and_for_nothing_else(app: Celery) -> None:
    asked = {entry["task"]: entry["schedule"] for entry in app.conf.beat_schedule.values()}
    assert asked == {
        jobs.FORGET_IDEMPOTENCY_KEYS: 600,
        jobs.FORGET_UPLOADS: 3_600,
        jobs.AUDIT: settings().audit_every_s,
    }
    # Where no worker runs for a day, its messages do not pile up; clocks that differ by minutes drop none.
    assert {entry["options"]["expires"] for entry in app.conf.beat_schedule.values()} == {3_600}


def test_a_broker_that_is_away_is_asked_every_two_seconds(app: Celery, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("kombu.utils.functional.sleep", lambda _: None)
    waits_s: list[float] = []
    with app.connection_for_read() as connection, pytest.raises(OperationalError):
        connection.ensure_connection(lambda _error, wait_s: waits_s.append(wait_s), max_retries=8)
    assert waits_s == [0.5, 1, 1.5, 2, 2, 2, 2, 2]


def test_an_unheard_hint_never_fails_the_worker(events: list[MutableMapping[str, Any]]) -> None:
    hints.publish(7, [1, 2])  # Redis is out of reach.
    assert [event["event"] for event in events] == ["hint_lost"]
    assert events[0]["batch_ids"] == [1, 2]


def test_a_listener_whose_redis_goes_away_is_told() -> None:
    with pytest.raises(RedisError):
        next(hints.listen())


@pytest.fixture
def redis() -> Iterator[FakeRedis]:
    # A monkeypatch of its own, undone before the environment forgets the real client.
    with pytest.MonkeyPatch.context() as patch, FakeRedis(decode_responses=True) as client:
        patch.setattr(process_redis, "redis", lambda: client)
        yield client


def test_a_sweep_that_cannot_be_noted_has_run_all_the_same(events: list[MutableMapping[str, Any]]) -> None:
    last_runs.note_sweep({})  # Redis is out of reach.
    assert [event["event"] for event in events] == ["sweep_not_noted"]


def test_how_long_ago_a_sweep_ran_is_known_once_one_ran(redis: FakeRedis, monkeypatch: pytest.MonkeyPatch) -> None:
    assert last_runs.swept_s_ago(redis) is None
    monkeypatch.setattr("time.time", lambda: 1_000.0)
    last_runs.note_sweep({})
    monkeypatch.setattr("time.time", lambda: 1_007.5)
    assert last_runs.swept_s_ago(redis) == pytest.approx(7.5)
    monkeypatch.setattr("time.time", lambda: 999.0)  # A clock that was set back.
    assert last_runs.swept_s_ago(redis) == 0


def test_sweeps_run_when_none_is_known_the_last_is_young_or_another_comes(
    redis: FakeRedis, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert last_runs.is_swept(redis)
    monkeypatch.setattr("time.time", lambda: 1_000.0)
    last_runs.note_sweep({})
    monkeypatch.setattr("time.time", lambda: 1_029.0)
    assert last_runs.is_swept(redis)
    monkeypatch.setattr("time.time", lambda: 1_031.0)
    monkeypatch.setattr("time.sleep", lambda _: last_runs.note_sweep({}))
    assert last_runs.is_swept(redis)
    moments = itertools.count(0.0, 5.0)
    monkeypatch.setattr("time.time", lambda: 1_062.0)
    monkeypatch.setattr("time.sleep", lambda _: None)
    monkeypatch.setattr("time.monotonic", lambda: next(moments))
    assert not last_runs.is_swept(redis)


def test_the_last_audit_is_known_with_time_and_breaches(redis: FakeRedis, monkeypatch: pytest.MonkeyPatch) -> None:
    assert last_runs.last_audit(redis) is None
    monkeypatch.setattr("time.time", lambda: 1_000.0)
    last_runs.note_audit(seconds=1.5, breaches=2)
    assert last_runs.last_audit(redis) == LastAudit(ended_at=1_000.0, seconds=1.5, breaches=2)


_USES: dict[str, Callable[[], object]] = {
    "hint_lost": lambda: hints.publish(7, [1]),
    "counts_lost": lambda: worker_counters.count({"points_sweeps": 1}),
    "sweep_not_noted": lambda: last_runs.note_sweep({}),
}


@pytest.mark.parametrize("first", _USES)
def test_a_redis_that_is_away_is_asked_once_a_second_and_not_by_everybody(
    first: str, events: list[MutableMapping[str, Any]], monkeypatch: pytest.MonkeyPatch
) -> None:
    now = 1_000.0
    monkeypatch.setattr("time.monotonic", lambda: now)
    _USES[first]()  # Redis is out of reach.
    for use in _USES.values():
        use()
        assert not need_message([Request(7)])
    assert [event["event"] for event in events] == [first]
    now += 1
    _USES[first]()
    assert [event["event"] for event in events] == [first] * 2


def test_without_redis_another_broker_takes_each_request_for_a_drain(monkeypatch: pytest.MonkeyPatch) -> None:
    requests = [Request(7), Request(7)]
    assert need_message(requests) == []  # Redis is the broker.
    monkeypatch.setenv("POINTS_BROKER_URL", "amqp://points:hush@127.0.0.1:1/")
    settings.cache_clear()
    assert need_message(requests) == requests


@pytest.mark.parametrize("error", [RedisTimeoutError, ReadOnlyError])
def test_whatever_it_fails_by_it_is_left_alone(error: type[Exception]) -> None:
    with pytest.raises(error), process_redis.unless_away():
        raise error
    with pytest.raises(process_redis.LeftAlone), process_redis.unless_away():
        pytest.fail("It was tried.")


def test_an_error_of_our_own_is_no_reason_to_leave_it_alone() -> None:
    with pytest.raises(ZeroDivisionError), process_redis.unless_away():
        raise ZeroDivisionError
    with process_redis.unless_away() as redis:
        assert isinstance(redis, Redis)


@pytest.fixture
def processes() -> ModuleType:
    """Import it only now: importing the worker ends a process that has no settings yet."""
    return import_module("worker.processes")


def test_a_worker_takes_no_server_that_only_reads(processes: ModuleType, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(connections, "_writable_only", False)
    monkeypatch.setattr(connections, "_answer_timeout_s", 1.0)
    processes._after_fork()
    assert (connections._writable_only, connections._answer_timeout_s) == (True, connections.ANSWER_TIMEOUT_S)
