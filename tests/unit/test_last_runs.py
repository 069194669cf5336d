"""When a sweep and an audit last ran is noted for people, and a sweep's note is never a reason to fail."""

from collections.abc import Iterator, MutableMapping
from typing import Any

import pytest
from fakeredis import FakeRedis

from app.messaging import last_runs, process_redis
from app.messaging.last_runs import LastAudit


@pytest.fixture
def redis() -> Iterator[FakeRedis]:
    # A monkeypatch of its own, undone before the environment forgets the real client.
    with pytest.MonkeyPatch.context() as patch, FakeRedis(decode_responses=True) as client:
        patch.setattr(process_redis, "redis", lambda: client)
        yield client


def test_a_sweep_that_cannot_be_noted_has_run_all_the_same(events: list[MutableMapping[str, Any]]) -> None:
    last_runs.note_sweep({})  # Redis is out of reach.
    assert [event["event"] for event in events] == ["sweep_not_noted"]


def test_how_long_ago_a_sweep_ran_is_known_once_one_ran(redis: FakeRedis, monkeypatch: pytest.MonkeyPatch) -> None:
    assert last_runs.swept_s_ago(redis) is None
    monkeypatch.setattr("time.time", lambda: 1_000.0)
    last_runs.note_sweep({})
    monkeypatch.setattr("time.time", lambda: 1_007.5)
    assert last_runs.swept_s_ago(redis) == pytest.approx(7.5)
    monkeypatch.setattr("time.time", lambda: 999.0)  # A clock that was set back.
    assert last_runs.swept_s_ago(redis) == 0


def test_the_last_audit_is_known_by_when_it_ended_and_what_it_took_and_found(
    redis: FakeRedis, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert last_runs.last_audit(redis) is None
    monkeypatch.setattr("time.time", lambda: 1_000.0)
    last_runs.note_audit(seconds=1.5, breaches=2)
    assert last_runs.last_audit(redis) == LastAudit(ended_at=1_000.0, seconds=1.5, breaches=2)
