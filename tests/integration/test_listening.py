"""Hints over a real Redis: every front that listens hears each of them, in order."""

from collections.abc import Iterator

import pytest

from app import hints, process_redis
from app.hints import Hint
from app.settings import settings
from tests.conftest import Servers


@pytest.fixture(autouse=True)
def pulse(broker: None, monkeypatch: pytest.MonkeyPatch) -> None:
    """Let a moment without a hint be short."""
    monkeypatch.setattr(process_redis, "_TIMEOUT_S", 0.05)
    process_redis.redis.cache_clear()


def heard(listening: Iterator[Hint | None]) -> Hint:
    """Return the next hint; the moments between without one are the listener's own pulse."""
    return next(hint for hint in listening if hint is not None)


def test_a_hint_reaches_every_front_that_listens() -> None:
    fronts = [hints.listen(), hints.listen()]
    assert [next(front) for front in fronts] == [None, None]  # Nothing has been said yet, and nobody is stuck.
    said = [
        Hint(organization_id=7, batch_ids=[3, 1, 2], has_left=False),
        Hint(organization_id=2**62, batch_ids=[2**63 - 1], has_left=True),
        Hint(organization_id=8, batch_ids=[], has_left=True, asked_for=2**63 - 1),  # Found nothing, and has left too.
        Hint(organization_id=8, batch_ids=[], has_left=False, found_owner=True, asked_for=1),
    ]
    for hint in said:
        hints.publish(hint)
    for front in fronts:
        assert [heard(front) for _ in said] == said


def test_a_hint_is_not_heard_in_another_database_of_the_same_redis(
    servers: Servers, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Redis' own PUBLISH knows no databases; another installation's batches have the ids of ours."""
    here = hints.listen()
    assert next(here) is None
    monkeypatch.setenv("REDIS_URL", servers.redis_url.rpartition("/")[0] + "/9")
    settings.cache_clear()
    process_redis.redis.cache_clear()
    there, said = hints.listen(), Hint(organization_id=7, batch_ids=[1], has_left=True)
    assert next(there) is None
    hints.publish(said)
    assert heard(there) == said
    assert next(here) is None


def test_hints_that_come_together_and_are_longer_than_one_read_are_each_heard() -> None:
    listening = hints.listen()
    assert next(listening) is None
    said = [Hint(organization_id=n, batch_ids=list(range(10**18, 10**18 + 10_000)), has_left=True) for n in (1, 2, 3)]
    for hint in said:
        hints.publish(hint)
    assert [heard(listening) for _ in said] == said
