"""Pings that are killed before they have read their answers leave nothing in Redis for good."""

import os
import subprocess
import sys
from importlib import import_module
from typing import Any

import pytest

from app.messaging import process_redis
from app.settings import settings

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
    return import_module("worker.unread").Unread()  # Importing the worker ends a process that has no settings yet.


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
