"""A Redis that falls silent while TCP still acknowledges: every use of it ends, and finds it again when it is back."""

import time
from collections.abc import MutableMapping
from typing import Any

import pytest
from redis.exceptions import RedisError

from app.messaging import hints, process_redis, worker_counters
from app.messaging.jobs import Job
from app.messaging.requests import need_message
from app.messaging.worker_counters import POINTS, POSTPONED_BATCHES, SWEEPS, count
from app.web.application import create_app
from tests.crash.proxy import Proxy
from tests.integration import books


@pytest.fixture
def proxy(redis_proxy: Proxy, monkeypatch: pytest.MonkeyPatch) -> Proxy:
    """Give a proxy before Redis, and a service that soon notices its silence."""
    monkeypatch.setattr(process_redis, "_TIMEOUT_S", 0.3)
    monkeypatch.setattr(process_redis, "_HEALTH_CHECK_INTERVAL_S", 0.6)
    return redis_proxy


def test_who_listens_on_a_connection_that_fell_silent_is_told_and_hears_again_on_another(proxy: Proxy) -> None:
    listening = hints.listen()
    assert next(listening) is None
    proxy.tell("silence")  # For good; but whoever connects anew finds all well.
    deadline = time.monotonic() + 30
    with pytest.raises(RedisError, match="silent"):
        all(time.monotonic() < deadline for _ in listening)
    again = hints.listen()
    assert next(again) is None
    hints.publish(1, [5])
    assert next(heard for heard in again if heard) == [5]


def test_a_listener_with_nothing_to_hear_for_long_is_not_taken_for_deaf(proxy: Proxy) -> None:
    listening = hints.listen()
    assert [next(listening) for _ in range(12)] == [None] * 12
    hints.publish(1, [7])
    assert next(heard for heard in listening if heard) == [7]


def test_to_tell_a_silent_redis_something_ends(proxy: Proxy, events: list[MutableMapping[str, Any]]) -> None:
    hints.publish(1, [1])
    proxy.tell("hole")
    began = time.monotonic()
    hints.publish(1, [2], {POINTS.field("live"): 5})
    assert not need_message([Job(1)])  # It is the broker too, and would take no message.
    worker_counters.note_sweep({SWEEPS.field(): 1})
    count({POSTPONED_BATCHES.field(): 1})
    assert time.monotonic() - began < 10
    assert [event["event"] for event in events] == ["hint_lost"]  # The others left it alone.


@pytest.mark.usefixtures("database")
def test_the_limit_of_calls_lets_everybody_through_soon(proxy: Proxy) -> None:
    authorized = {"Authorization": f"Bearer {books.make_live_key(books.make_organization())}"}
    client = create_app().test_client()
    proxy.tell("hole")
    began = time.monotonic()
    assert [client.get("/v1/organization", headers=authorized).status_code for _ in range(3)] == [200] * 3
    assert time.monotonic() - began < 10
