"""The tasks as a worker runs them, on a real PostgreSQL and a real Valkey, with the asking for new ones watched."""

from collections.abc import MutableMapping
from importlib import import_module
from types import ModuleType
from typing import Any

import pytest
from redis import Redis
from sqlalchemy import text

from app.ledger import drain, issue
from app.messaging import hints, process_redis, worker_counters
from app.messaging.jobs import Job
from app.messaging.requests import need_message
from app.postgres.database import transaction
from tests.integration import books

pytestmark = pytest.mark.usefixtures("database", "broker")

ANN = "ann@example.com"


@pytest.fixture
def tasks(database: None, broker: None) -> ModuleType:
    """Import the tasks only now: importing the worker ends a process that has no settings yet."""
    return import_module("worker.tasks")


@pytest.fixture
def submitted(tasks: ModuleType, monkeypatch: pytest.MonkeyPatch) -> list[Job]:
    """Collect the drains for which a task sends a message, in place of the broker."""
    sent: list[Job] = []
    monkeypatch.setattr("worker.tasks.submit", sent.append)
    return sent


def test_the_issue_task_drains_and_tells_the_waiting_fronts(tasks: ModuleType, submitted: list[Job]) -> None:
    organization_id = books.make_organization(100)
    queued = [books.queue_batch(organization_id, [ANN], 1) for _ in range(2)]
    hint = hints.listen()
    assert next(hint) is None  # It listens from here on.
    tasks.issue(organization_id=organization_id, batch_id=queued[0], recipients=1)
    assert next(heard for heard in hint if heard) == queued
    assert books.counts() == (0, 2)
    assert submitted == []
    # Whoever has heard of the round can see it counted, too.
    assert books.counted("points_drains|done", "points_final_batches|live|issued", "points_issued_points|live") == {
        "points_drains|done": 1,
        "points_final_batches|live|issued": 2,
        "points_issued_points|live": 2,
    }


def test_a_task_whose_turn_is_over_asks_for_a_fresh_one_with_the_request_it_worked_for(
    tasks: ModuleType, submitted: list[Job], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(issue, "BATCHES_MAX", 1)
    monkeypatch.setattr(drain, "ROUNDS_MAX", 2)
    monkeypatch.setattr("worker.tasks._TURN_S", 0.0)
    organization_id = books.make_organization(100)
    for _ in range(3):
        books.queue_batch(organization_id, [ANN], 1)
    assert tasks.issue(organization_id, request_id="req-1") == [1, 2]
    assert submitted == [Job(organization_id, request_id="req-1")]
    assert tasks.issue(**submitted[0]._asdict()) == [3]
    assert submitted == [Job(organization_id, request_id="req-1")]
    assert books.counts() == (0, 3)


def test_a_worker_that_drains_serves_all_who_ask_after_its_round_and_then_the_rest(
    tasks: ModuleType, submitted: list[Job], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(issue, "BATCHES_MAX", 1)
    busy, *others = (books.make_organization(100) for _ in range(4))
    batches = [books.queue_batch(busy, [ANN], 1) for _ in range(3)]
    late: list[int] = []
    publish = hints.publish

    def ask_at_the_first_hint(*arguments: Any, **named: Any) -> None:
        publish(*arguments, **named)
        if not late:
            late.extend(books.queue_batch(other, [ANN], 1) for other in others)
            [called] = need_message([Job(other) for other in others])
            assert called == Job(others[1]), "one is given to this worker, and one message brings another worker"

    monkeypatch.setattr(hints, "publish", ask_at_the_first_hint)
    assert sorted(tasks.issue(busy)) == sorted([*batches, *late]), "it waits for no message, which may come late"
    assert submitted == []


def test_a_key_that_is_30_days_old_is_kept_by_what_beat_has_run_and_one_of_32_days_is_not(tasks: ModuleType) -> None:
    organization_id = books.make_organization(100)
    for days in (30, 32):
        batch_id = books.queue_batch(organization_id, [ANN], 1, idempotency_key=f"{days} days")
        books.drain_all(organization_id)
        books.rewrite(f"UPDATE batches SET issued_at = now() - interval '{days} days' WHERE id = {batch_id}")
    tasks.forget_idempotency_keys()
    with transaction() as connection:
        statement = text("SELECT idempotency_key FROM batches WHERE idempotency_key IS NOT NULL")
        assert list(connection.execute(statement).scalars()) == ["30 days"]


def test_the_audit_task_notes_and_logs_breaches(tasks: ModuleType, events: list[MutableMapping[str, Any]]) -> None:
    organization_id = books.make_organization(100)
    books.issue_now(organization_id, [ANN], 10)
    events.clear()
    tasks.audit()
    noted = worker_counters.last_audit(process_redis.redis())
    assert noted is not None
    assert noted.breaches == 0
    assert books.counted() == {"points_audits|balanced": 1}
    books.execute(f"UPDATE organizations SET balance = balance + 1 WHERE id = {organization_id}")
    tasks.audit()
    noted = worker_counters.last_audit(process_redis.redis())
    assert noted is not None
    assert noted.breaches > 0
    assert books.counted() == {"points_audits|balanced": 1, "points_audits|not_balanced": 1}
    told = [(event["event"], event["log_level"], event["breaches"]) for event in events]
    assert told == [("audited", "info", 0), ("audited", "error", noted.breaches)]
    assert noted.seconds == events[-1]["seconds"] < 60


def test_an_audit_that_redis_misses_is_in_the_log(tasks: ModuleType, events: list[MutableMapping[str, Any]]) -> None:
    with pytest.MonkeyPatch.context() as patch:  # Undone before the environment forgets the real client.
        patch.setattr(process_redis, "redis", lambda: Redis(host="127.0.0.1", port=1))
        tasks.audit()
    assert [event["event"] for event in events] == ["audit_not_noted", "counts_lost", "audited"]


def test_an_audit_that_does_not_end_in_its_time_is_given_up_and_notes_nothing(
    tasks: ModuleType, monkeypatch: pytest.MonkeyPatch, events: list[MutableMapping[str, Any]]
) -> None:
    monkeypatch.setattr(tasks, "_AUDIT_TIME_LIMIT_S", 0.05)
    slow = {"slow": "SELECT pg_sleep(60)::text AS subject, '' AS seen"}
    monkeypatch.setattr("app.audit.run.RULES", slow)
    tasks.audit()
    assert worker_counters.last_audit(process_redis.redis()) is None
    assert [event["event"] for event in events] == ["audit_not_finished"]
    assert books.counted() == {"points_audits|not_finished": 1}
