"""Hints over a real Redis: every front hears each hint."""

from collections.abc import Iterator

import pytest

from app.messaging import hints, process_redis
from app.settings import settings
from tests.conftest import Servers


@pytest.fixture(autouse=True)
def pulse(broker: None, monkeypatch: pytest.MonkeyPatch) -> None:
    """Let a moment without a hint be short."""
    monkeypatch.setattr(process_redis, "_TIMEOUT_S", 0.3)
    process_redis.redis.cache_clear()


def heard(listening: Iterator[list[int] | None]) -> list[int]:
    """Return the next hint; the moments between without one are the listener's own pulse."""
    return next(hint for hint in listening if hint is not None)


def test_a_hint_reaches_every_front_that_listens() -> None:
    fronts = [hints.listen(), hints.listen()]
    assert [next(front) for front in fronts] == [None, None]  # Nothing has been said yet, and nobody is stuck.
    said = [[3, 1, 2], [2**63 - 1]]
    for batch_ids in said:
        hints.publish(7, batch_ids)
    for front in fronts:
        assert [heard(front) for _ in said] == said


def test_no_hint_is_heard_in_another_database_of_redis(servers: Servers, monkeypatch: pytest.MonkeyPatch) -> None:
    """Redis' own PUBLISH knows no databases; another installation's batches have the ids of ours."""
    here = hints.listen()
    assert next(here) is None
    monkeypatch.setenv("REDIS_URL", servers.redis_url.rpartition("/")[0] + "/9")
    settings.cache_clear()
    process_redis.redis.cache_clear()
    there = hints.listen()
    assert next(there) is None
    hints.publish(7, [1])
    assert heard(there) == [1]
    assert next(here) is None


def test_hints_that_come_together_and_are_longer_than_one_read_are_each_heard() -> None:
    listening = hints.listen()
    assert next(listening) is None
    said = [list(range(n * 10**18, n * 10**18 + 10_000)) for n in (1, 2, 3)]
    for batch_ids in said:
        hints.publish(7, batch_ids)
    assert [heard(listening) for _ in said] == said
