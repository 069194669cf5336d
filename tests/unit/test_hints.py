"""Hints over Redis are never a reason to fail, and what is noted there for people is found again."""

from collections.abc import Iterator, MutableMapping
from typing import Any

import pytest
from fakeredis import FakeRedis
from redis.exceptions import RedisError

from app import hints
from app.hints import Hint


@pytest.fixture
def redis() -> Iterator[FakeRedis]:
    # A monkeypatch of its own, undone before the environment forgets the real client.
    with pytest.MonkeyPatch.context() as patch, FakeRedis(decode_responses=True) as client:
        patch.setattr(hints, "redis", lambda: client)
        yield client


def test_an_unheard_hint_never_fails_the_worker(events: list[MutableMapping[str, Any]]) -> None:
    hints.publish(Hint(organization_id=7, batch_ids=[1, 2], has_left=True))  # Redis is out of reach.
    hints.note_sweep()
    assert [event["event"] for event in events] == ["hint_lost", "sweep_not_noted"]
    assert events[0]["batch_ids"] == [1, 2]


def test_a_listener_whose_redis_goes_away_is_told() -> None:
    with pytest.raises(RedisError):
        next(hints.listen())


def test_how_long_ago_a_sweep_ran_is_known_once_one_ran(redis: FakeRedis, monkeypatch: pytest.MonkeyPatch) -> None:
    assert hints.swept_s_ago(redis) is None
    monkeypatch.setattr("time.time", lambda: 1_000.0)
    hints.note_sweep()
    monkeypatch.setattr("time.time", lambda: 1_007.5)
    assert hints.swept_s_ago(redis) == pytest.approx(7.5)
    monkeypatch.setattr("time.time", lambda: 999.0)  # A clock that was set back.
    assert hints.swept_s_ago(redis) == 0
