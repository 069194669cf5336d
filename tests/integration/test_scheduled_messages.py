"""Scheduled messages on a real broker: beat counts those that wait, workers take them from their own queue."""

from importlib import import_module

import pytest
from celery import Celery

from app import queue
from tests.conftest import Servers

pytestmark = pytest.mark.usefixtures("broker")


def test_beat_leaves_no_more_messages_than_its_limit_where_no_worker_takes_them(servers: Servers) -> None:
    steady = import_module("worker.schedule")  # Importing the worker ends a process that has no settings yet.
    with Celery(broker=servers.redis_url, set_as_current=False) as app:
        app.add_defaults(queue._configuration)
        scheduler = steady.SteadyScheduler(app)
        sweep = scheduler.schedule["sweep"]
        for _ in range(2 * steady.SCHEDULED_WAITING_MAX):
            scheduler.apply_entry(sweep, producer=scheduler.producer)
        assert scheduler._waiting() == steady.SCHEDULED_WAITING_MAX
        scheduler.close()


def test_a_worker_takes_from_both_queues_unless_it_is_told_otherwise() -> None:
    assert set(queue.celery.amqp.queues.consume_from) == {queue.QUEUE, queue.SCHEDULED_QUEUE}
