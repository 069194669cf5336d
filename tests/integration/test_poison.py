"""Poison: a batch that fails in the database harms only itself, waits a while, and is issued once it can be."""

from collections.abc import Callable, Iterator, MutableMapping
from datetime import datetime, timedelta
from typing import Any

import pytest
from sqlalchemy import Connection, text

from app.batches.queue import organizations_waiting
from app.ledger import issue
from app.ledger.drain import _left_alone_until, drain
from app.messaging import worker_counters
from app.postgres.database import transaction
from tests.integration import books

pytestmark = pytest.mark.usefixtures("database")

ANN, BOB, MALLORY = "ann@example.com", "bob@example.com", "mallory@example.com"
_CURE = "ALTER TABLE transactions DROP CONSTRAINT IF EXISTS ck_transactions_poison"


@pytest.fixture
def poison(database: None) -> Iterator[None]:
    """Have the database refuse every transaction for MALLORY, with her address in the error's detail."""
    books.execute(f"ALTER TABLE transactions ADD CONSTRAINT ck_transactions_poison CHECK (email <> '{MALLORY}')")
    yield
    books.execute(_CURE)


def _now_failures_and_retry_at(batch_id: int) -> tuple[datetime, int, datetime | None]:
    with transaction() as connection:
        statement = text("SELECT clock_timestamp(), failures, retry_at FROM batches WHERE id = :id")
        now, failures, retry_at = connection.execute(statement, {"id": batch_id}).one()
        return now, failures, retry_at


def _retry_now(batch_id: int) -> None:
    books.execute(f"UPDATE batches SET retry_at = clock_timestamp() WHERE id = {batch_id}")


@pytest.mark.usefixtures("poison")
def test_a_batch_that_fails_is_tried_again_after_1_2_4_8_and_then_always_10_seconds() -> None:
    organization_id = books.make_organization(100)
    batch_id = books.queue_batch(organization_id, [MALLORY], 10)
    for failures, wait_s in enumerate([1, 2, 4, 8, 10, 10], start=1):
        before, *_ = _now_failures_and_retry_at(batch_id)
        assert books.drain_all(organization_id) == []
        after, seen, retry_at = _now_failures_and_retry_at(batch_id)
        assert seen == failures
        assert retry_at is not None
        assert before <= retry_at - timedelta(seconds=wait_s) <= after
        _retry_now(batch_id)


@pytest.mark.usefixtures("poison")
def test_a_postponed_batch_is_left_alone_until_its_time_and_nobody_is_asked_to_come_for_it() -> None:
    organization_id = books.make_organization(100)
    batch_id = books.queue_batch(organization_id, [MALLORY], 10)
    books.drain_all(organization_id)
    books.execute("UPDATE batches SET retry_at = clock_timestamp() + interval '50 s'")
    assert not books.has_due(organization_id)
    assert books.run(organizations_waiting, longer_than_s=0) == []
    neighbour = books.queue_batch(organization_id, [ANN], 10)
    assert books.drain_all(organization_id) == [neighbour]
    assert _now_failures_and_retry_at(batch_id)[1] == 1
    _retry_now(batch_id)
    assert books.run(organizations_waiting, longer_than_s=0) == [organization_id]


@pytest.mark.usefixtures("poison")
def test_a_batch_that_failed_is_issued_once_the_cause_is_mended() -> None:
    organization_id = books.make_organization(100)
    books.make_users(MALLORY)
    batch_id = books.queue_batch(organization_id, [MALLORY, BOB], 10)
    books.drain_all(organization_id)
    assert books.balance_of_user(MALLORY) == 0
    books.execute(_CURE)
    _retry_now(batch_id)
    assert books.drain_all(organization_id) == [batch_id]
    batch, _ = books.read_batch(organization_id, batch_id)
    assert (batch.status, batch.debited_count, batch.current_balance) == ("issued", 2, 80)
    assert books.balance_of_user(MALLORY) == 10
    assert books.breaches() == []


@pytest.mark.usefixtures("poison", "broker")
def test_a_round_that_failed_is_counted_as_failed_and_each_batch_tried_after_it_as_a_round_of_its_own() -> None:
    organization_id = books.make_organization(100)
    for address in (ANN, MALLORY, BOB):
        books.queue_batch(organization_id, [address], 10)
    drain(organization_id, announce=lambda _batch_ids, counts: worker_counters.count(counts))
    counted = books.counted()
    assert {field: count for field, count in counted.items() if field.startswith("points_drains|")} == {
        "points_drains|failed": 1,
        "points_drains|done": 2,
    }
    assert sum(count for field, count in counted.items() if _is_bucket(field, "points_issue_seconds")) == 2
    assert counted["points_drain_batches|1"] == counted["points_drain_recipients|1"] == 2
    assert counted["points_postponed_batches"] == 1


def _is_bucket(field: str, histogram: str) -> bool:
    return field.startswith(f"{histogram}|") and not field.endswith("|sum")


@pytest.mark.usefixtures("poison")
def test_each_batch_is_announced_when_it_is_issued_and_waits_for_no_other_of_its_round() -> None:
    organization_id = books.make_organization(100)
    queued = [books.queue_batch(organization_id, [address], 10) for address in (ANN, MALLORY, BOB)]
    assert books.rounds_of(organization_id) == [[queued[0]], [queued[2]]]


@pytest.mark.usefixtures("poison")
def test_the_log_names_the_batch_and_the_cause_and_holds_no_address(events: list[MutableMapping[str, Any]]) -> None:
    organization_id = books.make_organization(100)
    books.queue_batch(organization_id, [ANN], 10)
    books.queue_batch(organization_id, [MALLORY], 10)
    books.drain_all(organization_id)
    cause = {"error": "CheckViolation", "sqlstate": "23514", "constraint": "ck_transactions_poison"}
    assert [event for event in events if event["log_level"] == "error"] == [
        {"event": "drain_failed", "log_level": "error", "organization_id": 1, **cause},
        {"event": "batch_postponed", "log_level": "error", "organization_id": 1, "batch_id": 2, **cause},
    ]
    # What was issued all the same is told as ever.
    [drained] = [event for event in events if event["event"] == "drained"]
    assert (drained["batch_ids"], drained["recipients"], drained["points"]) == ([1], 1, 10)
    # PostgreSQL's own words repeat the row that it refused.
    assert "@" not in str(events)
    assert "mallory" not in str(events)


def _fail_as_a_whole(monkeypatch: pytest.MonkeyPatch, then: Callable[[], object]) -> None:
    """Let the next drain fail, so that batches are tried one at a time; do something before the first is committed."""

    def fail_and_go_on(
        connection: Connection, organization_id: int, *, only: int | None = None
    ) -> list[issue.Outcome] | None:
        if only is None:
            raise RuntimeError
        monkeypatch.undo()
        issued = issue.issue(connection, organization_id, only=only)
        then()
        return issued

    monkeypatch.setattr("app.ledger.drain.issue", fail_and_go_on)


def test_a_row_held_by_another_while_batches_are_tried_singly_postpones_none(monkeypatch: pytest.MonkeyPatch) -> None:
    organization_id = books.make_organization(100)
    queued = [books.queue_batch(organization_id, [ANN], 10) for _ in range(2)]
    monkeypatch.setattr(issue, "_LOCK_TIMEOUT_MS", 50)
    with transaction() as somebody:
        somebody.exec_driver_sql("SELECT FROM organizations FOR UPDATE")
        _fail_as_a_whole(monkeypatch, lambda: None)
        assert books.rounds_of(organization_id) == []
    assert [_now_failures_and_retry_at(batch_id)[1:] for batch_id in queued] == [(0, None)] * 2
    _left_alone_until.clear()
    assert books.rounds_of(organization_id) == [queued]
