"""Messages of the broker: brought again, counted, and what is left of answers that nobody reads."""

import logging
import os
import signal
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from importlib import import_module
from typing import Any

import psutil
import pytest
from celery import Celery

from app.messaging import jobs, process_redis
from app.metrics import page
from app.postgres.connections import engine
from app.settings import settings
from tests.crash.proxy import Proxy
from tests.deadline import TIMEOUT_S, until
from tests.integration import books, races, workers


@pytest.mark.usefixtures("broker", "database")
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


@pytest.mark.usefixtures("broker")
def test_the_messages_that_no_worker_has_taken_are_counted(monkeypatch: pytest.MonkeyPatch) -> None:
    with Celery(set_as_current=False) as app:  # The service's own keeps the broker that it was first used with.
        app.add_defaults(jobs._configuration)
        monkeypatch.setattr(jobs, "celery", app)
        assert jobs.messages_waiting() == 0
        assert jobs.submit(jobs.Job(1))
        assert jobs.messages_waiting() == 1
        assert [(metric.name, metric.samples[0].value) for metric in page.broker()] == [("points_broker_messages", 1)]


@pytest.mark.usefixtures("broker")
def test_a_broker_that_goes_while_it_is_asked_is_out_of_reach(monkeypatch: pytest.MonkeyPatch) -> None:
    def gone(*_: object) -> int:
        raise ConnectionResetError

    monkeypatch.setattr(jobs, "_waiting_in", gone)
    with Celery(set_as_current=False) as app:
        app.add_defaults(jobs._configuration)
        monkeypatch.setattr(jobs, "celery", app)
        assert jobs.messages_waiting() is None


_BINDINGS = "_kombu.binding.reply.celery.pidbox"


_KILLED = 20


# Each child is killed while it waits for answers: the parent sees its binding first.
_PINGS = """
import os, signal, sys, time
from app.messaging import process_redis
from app.messaging.jobs import celery
for number in range(1, int(sys.argv[1]) + 1):
    if (child := os.fork()) == 0:
        celery.control.ping(timeout=30)
    while process_redis.redis().scard(sys.argv[2]) < number:
        time.sleep(0.01)
    os.kill(child, signal.SIGKILL)
    os.waitpid(child, 0)
"""


def kill_pings(number: int) -> None:
    subprocess.run([sys.executable, "-c", _PINGS, str(number), _BINDINGS], check=True, env=os.environ)


@pytest.fixture
def unread(broker: None) -> Any:
    return import_module(
        "app.messaging.broker"
    ).Unread()  # Importing the worker ends a process that has no settings yet.


def test_the_bindings_of_killed_pings_are_forgotten_and_those_of_a_ping_under_way_are_not(unread: Any) -> None:
    redis = process_redis.redis()
    kill_pings(_KILLED)
    unread.forget()
    assert redis.scard(_BINDINGS) == _KILLED  # For what it knows, they are under way.
    redis.sadd(_BINDINGS, "under way")
    unread.forget()
    assert redis.smembers(_BINDINGS) == {"under way"}
    unread.forget()
    assert redis.exists(_BINDINGS) == 0


def test_answers_that_nobody_has_read_expire_and_messages_do_not(unread: Any) -> None:
    redis = process_redis.redis()
    for queue in ("7.reply.celery.pidbox", "points"):
        redis.lpush(queue, "{}")
    unread.forget()
    redis.expire("7.reply.celery.pidbox", 100)
    unread.forget()
    assert 0 < redis.ttl("7.reply.celery.pidbox") <= 100  # No look puts it off.
    assert redis.ttl("points") == -1


def test_a_redis_that_is_not_the_broker_is_left_as_it_is(unread: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    process_redis.redis().lpush("7.reply.celery.pidbox", "{}")
    monkeypatch.setenv("POINTS_BROKER_URL", "amqp://points:hush@127.0.0.1:1/")
    settings.cache_clear()
    unread.forget()
    assert process_redis.redis().ttl("7.reply.celery.pidbox") == -1


@pytest.mark.usefixtures("broker")
@pytest.mark.parametrize("how", ["ack", "reject", "requeue"])
def test_a_slot_comes_free_although_nobody_hears_of_it(how: str, redis_proxy: Proxy) -> None:
    with Celery(set_as_current=False) as app:
        app.add_defaults(jobs._configuration)
        app.send_task(jobs.AUDIT, queue=jobs.QUEUE)
        with app.connection_for_read() as connection, connection.channel() as channel:
            channel.basic_qos(0, 1, False)
            message: Any = channel.basic_get(jobs.QUEUE)
            assert not channel.qos.can_consume()
            redis_proxy.tell("hole")
            logger = logging.getLogger("slots")
            if how == "ack":
                message.ack_log_error(logger, connection.connection_errors)
            else:
                message.reject_log_error(logger, connection.connection_errors, requeue=how == "requeue")
            assert channel.qos.can_consume()
            redis_proxy.tell("forward")


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


@pytest.mark.usefixtures("broker", "database")
def test_a_worker_stops_though_its_parent_never_heard_of_the_last_task(worker: psutil.Process, sender: Celery) -> None:
    organization_id = books.make_organization(100)
    batch_id = books.queue_batch(organization_id, ["a@example.com"], 10)
    with _frozen(workers.pool_of(worker)), sender.connection_for_read() as connection:
        sender.send_task(jobs.ISSUE, kwargs={"organization_id": organization_id}, queue=jobs.QUEUE)
        redis = connection.default_channel.client
        until(lambda: redis.hlen("unacked") == 1, what="the parent has the message")
        for _ in range(2):  # The parent's loop goes round: now the task stands in a child's pipe.
            assert sender.control.ping(timeout=TIMEOUT_S, limit=1)
        threads = _threads(worker)
        worker.send_signal(signal.SIGTERM)
        # A new one keeps its timers going while it waits for its children.
        until(lambda: _threads(worker) - threads, what="the parent waits for its children")
    assert worker.wait(_STOPS_WITHIN_S) == 0
    # The task was a child's already. Its message has come back all the same, and will find nothing to do.
    assert books.read_batch(organization_id, batch_id)[0].status == "issued"
    with sender.connection_for_read() as connection:
        assert connection.default_channel.client.llen(jobs.QUEUE) == 1
