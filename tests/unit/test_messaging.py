"""Redis and the broker as a process sees them: addresses, hints, counters, and what a server that is away may cost."""

import os
import subprocess
import sys
from collections.abc import Callable, MutableMapping
from typing import Any

import pytest

from app.messaging import hints, worker_counters
from app.messaging.broker import broker_settings
from app.messaging.jobs import Job
from app.messaging.requests import need_message
from app.settings import settings


def test_each_sentinel_is_an_address_of_the_broker() -> None:
    found = broker_settings("sentinel://:hu%40sh@w1:1,w2/3?master=points&sentinel_password=quiet")
    assert found["broker_url"] == "sentinel://:hu%40sh@w1:1/3;sentinel://:hu%40sh@w2:26379/3"
    options = found["broker_transport_options"]
    assert options["master_name"] == "points"
    assert options["sentinel_kwargs"]["password"] == "quiet"
    assert options["sentinel_kwargs"]["socket_timeout"] == options["socket_timeout"]


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


_USES: dict[str, Callable[[], object]] = {
    "hint_lost": lambda: hints.publish(7, [1]),
    "counts_lost": lambda: worker_counters.count({"points_sweeps": 1}),
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
        assert not need_message([Job(7)])
    assert [event["event"] for event in events] == [first]
    now += 1
    _USES[first]()
    assert [event["event"] for event in events] == [first] * 2


def test_without_redis_another_broker_takes_each_request_for_a_drain(monkeypatch: pytest.MonkeyPatch) -> None:
    requests = [Job(7), Job(7)]
    assert need_message(requests) == []  # Redis is the broker.
    monkeypatch.setenv("POINTS_BROKER_URL", "amqp://points:hush@127.0.0.1:1/")
    settings.cache_clear()
    assert need_message(requests) == requests
