"""A message comes again when the process that worked on it has died, also where no sweep runs."""

import os
import signal
import subprocess
import sys
from collections.abc import Iterator

import psutil
import pytest
from celery import Celery
from sqlalchemy import text

from app import queue
from app.database import engine, transaction
from tests.conftest import Servers
from tests.integration import books, races

pytestmark = pytest.mark.usefixtures("broker", "database")


@pytest.fixture
def sender(servers: Servers) -> Iterator[Celery]:
    """Give a sender of its own: the service's keeps the broker that it was first used with in this process."""
    with Celery(broker=servers.redis_url) as sender:
        yield sender


@pytest.fixture
def worker(broker: None, database: None, sender: Celery) -> Iterator[psutil.Process]:
    """Run a real worker with two processes, and no beat: nothing but the broker brings a message again."""
    command = [sys.executable, "-m", "celery", "--app", "worker", "--quiet", "worker", "--concurrency", "2"]
    process = subprocess.Popen([*command, "--without-mingle", "--without-gossip"], stderr=subprocess.DEVNULL)
    try:
        races.until(lambda: bool(sender.control.ping(timeout=0.5)), what="the worker answers")
        yield psutil.Process(process.pid)
    finally:
        process.terminate()
        process.wait(races.PATIENCE_S)


def _waiting_for_the_table() -> bool:
    statement = text("SELECT EXISTS (SELECT FROM pg_locks WHERE NOT granted AND relation = 'batches'::regclass)")
    with transaction() as connection:
        return bool(connection.execute(statement).scalar_one())


def test_a_batch_whose_worker_process_was_killed_is_issued_by_another(worker: psutil.Process, sender: Celery) -> None:
    organization_id = books.make_organization(100)
    batch_id = books.queue_batch(organization_id, ["a@example.com"], 10)
    # The whole table is locked, so that the task stands still before it owns or changes anything.
    with engine().connect() as connection:
        connection.exec_driver_sql("LOCK TABLE batches IN ACCESS EXCLUSIVE MODE")
        sender.send_task(queue.ISSUE, kwargs={"organization_id": organization_id}, queue=queue.QUEUE)
        races.until(_waiting_for_the_table, what="the drain waits")
        for child in worker.children():
            os.kill(child.pid, signal.SIGKILL)
        connection.rollback()
    races.until(lambda: books.read_batch(organization_id, batch_id)[0].status == "issued", what="it is issued")
    assert books.balance_of(organization_id) == 90
    assert books.breaches() == []
