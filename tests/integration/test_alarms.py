"""What wakes people up: an audit that finds a breach, and a queue that grows old."""

import time
from inspect import unwrap

import pytest
from sqlalchemy.exc import SQLAlchemyError

from app.cli.audit import audit
from app.messaging import last_runs, process_redis
from app.metrics import state
from app.postgres.database import transaction
from tests.integration import books


@pytest.mark.usefixtures("database", "broker")
def test_an_audit_that_finds_breaches_fails_and_notes_how_many_and_when() -> None:
    organization_id = books.make_organization(100)
    books.execute(f"UPDATE organizations SET balance = balance + 1 WHERE id = {organization_id}")
    expected = len(books.breaches())
    assert expected > 0
    assert audit.callback is not None
    answer = unwrap(audit.callback)()
    assert (answer.exit_status, answer._document["balanced"]) == (1, False)
    noted = last_runs.last_audit(process_redis.redis())
    assert noted is not None
    assert noted.breaches == expected
    assert abs(noted.ended_at - time.time()) < 60


@pytest.mark.usefixtures("database")
def test_the_queue_is_shown_by_its_length_and_by_its_age() -> None:
    organization_id = books.make_organization(100)
    for _ in range(2):
        books.queue_batch(organization_id, ["ann@example.com"], 1)
    books.execute("UPDATE batches SET created_at = now() - interval '90 s'")
    shown = {metric.name: metric.samples[0].value for metric in state.queue()}
    assert shown["points_queued_batches"] == 2
    assert 90 <= shown["points_oldest_queued_seconds"] < 120
    books.drain_all(organization_id)
    books.queue_reversal(organization_id, batch_id=1)
    books.execute("UPDATE reversals SET created_at = now() - interval '60 s'")
    shown = {metric.name: metric.samples[0].value for metric in state.queue()}
    assert (shown["points_queued_batches"], shown["points_queued_reversals"]) == (0, 1)
    assert 60 <= shown["points_oldest_queued_seconds"] < 90


@pytest.mark.usefixtures("database")
def test_a_look_at_the_queue_that_takes_long_is_given_up(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(state, "_COUNT_TIMEOUT_S", 0.1)
    with transaction() as holder:
        holder.exec_driver_sql("LOCK TABLE batches")
        began = time.monotonic()
        with pytest.raises(SQLAlchemyError):
            list(state.queue())
        assert time.monotonic() - began < 5  # A connection of ours waits for ten seconds.
