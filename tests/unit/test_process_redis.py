"""A Redis that was seen away is left alone for a second, by all that can do without."""

from collections.abc import Callable, MutableMapping
from typing import Any

import pytest
from redis import Redis
from redis.exceptions import ReadOnlyError
from redis.exceptions import TimeoutError as RedisTimeoutError

from app.messaging import hints, last_runs, process_redis, worker_counters
from app.settings import settings

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
        assert not hints.request_drain(7)
    assert [event["event"] for event in events] == [first]
    now += 1
    _USES[first]()
    assert [event["event"] for event in events] == [first] * 2


def test_without_redis_each_request_for_a_drain_is_the_first_where_another_broker_can_take_it(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    assert [hints.request_drain(7) for _ in range(2)] == [False, False]  # Redis is the broker.
    monkeypatch.setenv("POINTS_BROKER_URL", "amqp://points:hush@127.0.0.1:1/")
    settings.cache_clear()
    assert [hints.request_drain(7) for _ in range(2)] == [True, True]


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
