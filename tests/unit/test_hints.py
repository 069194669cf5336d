"""Hints over Redis are never a reason to fail."""

import time
from collections.abc import MutableMapping
from typing import Any

import pytest
from redis.exceptions import RedisError

from app.messaging import hints


def test_an_unheard_hint_never_fails_the_worker(events: list[MutableMapping[str, Any]]) -> None:
    hints.publish(7, [1, 2])  # Redis is out of reach.
    assert [event["event"] for event in events] == ["hint_lost"]
    assert events[0]["batch_ids"] == [1, 2]


def test_a_redis_that_is_away_is_asked_once_in_a_while_and_not_by_everybody(
    events: list[MutableMapping[str, Any]], monkeypatch: pytest.MonkeyPatch
) -> None:
    hints.publish(7, [1])
    for batch_id in range(2, 50):
        hints.publish(7, [batch_id])
        assert hints.request_drain(7)
    assert [event["batch_ids"] for event in events] == [[1]]
    later = time.monotonic() + 1
    monkeypatch.setattr("time.monotonic", lambda: later)
    hints.publish(7, [50])
    assert [event["batch_ids"] for event in events] == [[1], [50]]


def test_a_listener_whose_redis_goes_away_is_told() -> None:
    with pytest.raises(RedisError):
        next(hints.listen())
