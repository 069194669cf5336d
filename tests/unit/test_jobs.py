"""The Celery app: what a worker takes at once, and how long it tries to reach a broker that is away."""

import os
import subprocess
import sys
from collections.abc import Iterator

import pytest
from celery import Celery
from kombu.exceptions import OperationalError

from app.messaging import jobs
from app.settings import settings


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


def test_a_broker_that_is_away_is_asked_again_soon_and_every_two_seconds_in_the_end(
    app: Celery, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("kombu.utils.functional.sleep", lambda _: None)
    waits_s: list[float] = []
    with app.connection_for_read() as connection, pytest.raises(OperationalError):
        connection.ensure_connection(lambda _error, wait_s: waits_s.append(wait_s), max_retries=8)
    assert waits_s == [0.5, 1, 1.5, 2, 2, 2, 2, 2]
