"""A worker that is asked to stop does so in seconds, also with a task that was handed over in this very moment."""

import signal
from collections.abc import Iterator
from contextlib import contextmanager

import psutil
import pytest
from celery import Celery

from app.messaging import jobs
from tests.deadline import until
from tests.integration import books, races, workers

pytestmark = pytest.mark.usefixtures("broker", "database")

# A child that waits for its parent, and nothing else, would hold the worker up for half a minute.
_STOPS_WITHIN_S = 10.0


@contextmanager
def _frozen(children: list[psutil.Process]) -> Iterator[None]:
    for child in children:
        child.suspend()
    try:
        yield
    finally:
        for child in children:
            child.resume()


def _threads(process: psutil.Process) -> set[int]:
    return {thread.id for thread in process.threads()}


def test_a_worker_stops_though_its_parent_never_heard_of_the_last_task(worker: psutil.Process, sender: Celery) -> None:
    organization_id = books.make_organization(100)
    batch_id = books.queue_batch(organization_id, ["a@example.com"], 10)
    with _frozen(workers.pool_of(worker)), sender.connection_for_read() as connection:
        sender.send_task(jobs.ISSUE, kwargs={"organization_id": organization_id}, queue=jobs.QUEUE)
        redis = connection.default_channel.client
        until(lambda: redis.hlen("unacked") == 1, what="the parent has the message")
        for _ in range(2):  # The parent's loop goes round: now the task stands in a child's pipe.
            assert sender.control.ping(timeout=races.PATIENCE_S, limit=1)
        threads = _threads(worker)
        worker.send_signal(signal.SIGTERM)
        # A new one keeps its timers going while it waits for its children.
        until(lambda: _threads(worker) - threads, what="the parent waits for its children")
    assert worker.wait(_STOPS_WITHIN_S) == 0
    # The task was a child's already. Its message has come back all the same, and will find nothing to do.
    assert books.read_batch(organization_id, batch_id)[0].status == "issued"
    with sender.connection_for_read() as connection:
        assert connection.default_channel.client.llen(jobs.QUEUE) == 1
