"""Hints over Redis are never a reason to fail."""

from collections.abc import MutableMapping
from typing import Any

import pytest
from redis.exceptions import RedisError

from app.messaging import hints


def test_an_unheard_hint_never_fails_the_worker(events: list[MutableMapping[str, Any]]) -> None:
    hints.publish(7, [1, 2])  # Redis is out of reach.
    assert [event["event"] for event in events] == ["hint_lost"]
    assert events[0]["batch_ids"] == [1, 2]


def test_a_listener_whose_redis_goes_away_is_told() -> None:
    with pytest.raises(RedisError):
        next(hints.listen())
