"""A message comes again when the process that worked on it has died, also where no sweep runs."""

import os
import signal

import psutil
import pytest
from celery import Celery

from app.messaging import jobs
from app.postgres.connections import engine
from tests.deadline import until
from tests.integration import books, races, workers

pytestmark = pytest.mark.usefixtures("broker", "database")


def test_a_batch_whose_worker_process_was_killed_is_issued_by_another(worker: psutil.Process, sender: Celery) -> None:
    organization_id = books.make_organization(100)
    batch_id = books.queue_batch(organization_id, ["a@example.com"], 10)
    # The whole table is locked, so that the task stands still before it owns or changes anything.
    with engine().connect() as connection:
        connection.exec_driver_sql("LOCK TABLE organizations IN ACCESS EXCLUSIVE MODE")
        sender.send_task(jobs.ISSUE, kwargs={"organization_id": organization_id}, queue=jobs.QUEUE)
        races.until_waiting()
        orphans = races.waiting()
        for child in workers.pool_of(worker):
            os.kill(child.pid, signal.SIGKILL)
        # A drain is one message to PostgreSQL, its COMMIT included: let go too soon, and it ends without its worker.
        until(lambda: not orphans & races.waiting(), what="PostgreSQL has given the drain up")
        connection.rollback()
    until(lambda: books.read_batch(organization_id, batch_id)[0].status == "issued", what="it is issued")
    assert books.balance_of(organization_id) == 90
    assert books.breaches() == []
