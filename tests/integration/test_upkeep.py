"""A worker's upkeep, on a real PostgreSQL and a real Valkey: it sweeps, claims and folds, and needs no message."""

import os
import signal
import subprocess
import sys
from collections.abc import Callable, Iterator, MutableMapping
from datetime import UTC, datetime, timedelta
from itertools import islice
from types import ModuleType
from typing import Any

import psutil
import pytest
from sqlalchemy import Connection
from sqlalchemy.exc import OperationalError

from app import organizations
from app.ledger import fold
from app.ledger.due import what_is_due
from app.messaging import hints, process_redis, worker_counters
from app.postgres.database import transaction
from tests.deadline import until
from tests.integration import books, races, workers
from tests.integration.logs_of_events import events_of, rendered, types_of

pytestmark = pytest.mark.usefixtures("database", "broker")

ANN, BOB = "ann@example.com", "bob@example.com"


def test_a_sweep_issues_what_has_been_queued_too_long_and_notes_that_it_ran(upkeep: ModuleType) -> None:
    lost, young, _ = (books.make_organization(100) for _ in range(3))
    old = books.queue_batch(lost, [ANN], 1)
    waiting = books.queue_batch(young, [ANN], 1)
    books.execute(f"UPDATE batches SET created_at = now() - interval '4 s' WHERE organization_id = {lost}")
    books.execute(f"UPDATE batches SET created_at = now() WHERE organization_id = {young}")
    assert worker_counters.swept_s_ago(process_redis.redis()) is None
    hint = hints.listen()
    assert next(hint) is None  # It listens from here on.
    upkeep.sweep()
    assert next((heard for heard in islice(hint, 10) if heard), None) == [old]
    assert books.read_batch(young, waiting)[0].status == "queued"
    assert books.counted("points_swept_batches", "points_sweeps", "points_final_batches|live|issued") == {
        "points_swept_batches": 1,
        "points_sweeps": 1,
        "points_final_batches|live|issued": 1,
    }
    seconds = worker_counters.swept_s_ago(process_redis.redis())
    assert seconds is not None
    assert seconds < 10


def test_a_look_finds_what_is_due_and_nothing_else(upkeep: ModuleType) -> None:
    """All else would wait for a minute, or be done twice a second."""
    organization_id = books.make_organization(100)
    work: dict[str, Callable[[], object]] = {
        "sweep": upkeep.sweep,
        "number": upkeep.number_all,
        "release": upkeep.release,
        "return": upkeep.return_unclaimed,
        "reject_unanswered": upkeep.reject_unanswered,
    }

    def found() -> set[str]:
        due = books.run(what_is_due, queued_longer_than_s=upkeep.QUEUED_TOO_LONG_S)
        assert due.keys() == work.keys()
        return {name for name, is_due in due.items() if is_due}

    def is_done(*names: str) -> None:
        """See that these are due and no other, and do them."""
        assert found() == set(names)
        for name in names:
            work[name]()

    books.make_users(BOB)
    upkeep.number_all()
    books.issue_now(organization_id, [ANN, BOB], 5, hold_days=5)
    is_done("number")
    batch_id = books.queue_batch(organization_id, [ANN], 1)
    is_done()
    books.execute(f"UPDATE batches SET created_at = now() - interval '4 s' WHERE id = {batch_id}", books.DIGEST_BATCHES)
    is_done("sweep")  # A drain numbers its own events.
    books.queue_batch(organization_id, [ANN], 1, send_at=datetime.now(UTC) + timedelta(days=1))
    is_done("number")
    books.move_scheduled("now()")
    is_done("number", "release")
    books.drain_all(organization_id)
    is_done("number")
    books.let_days_pass(6)
    is_done("return")
    is_done("number")
    books.run(organizations.change, organization_id, {"approval_above": 1, "approval_of": "all"})
    batch_id = books.queue_batch(organization_id, [ANN, BOB], 1)
    is_done("number")
    long_ago = f"UPDATE batches SET created_at = now() - interval '8 days' WHERE id = {batch_id}"
    books.execute(long_ago, books.DIGEST_BATCHES)
    is_done("reject_unanswered")
    is_done("number")
    # What is due by the clock of a sandbox, each of them looks for itself.
    books.execute("UPDATE organizations SET sandbox_ahead = '1 h'")
    assert found() == {"release", "return", "reject_unanswered"}
    assert books.breaches() == []


@pytest.fixture
def beside(database: None, broker: None) -> Iterator[subprocess.Popen[bytes]]:
    """Run the upkeep alone, as a worker's parent would."""
    process = subprocess.Popen([sys.executable, "-m", "worker.upkeep", str(os.getpid())])
    yield process
    process.kill()
    process.wait()


@pytest.mark.usefixtures("beside")
def test_what_is_queued_held_by_a_crossing_or_unfolded_is_seen_to_though_nobody_asks() -> None:
    organization_id = books.make_organization(100)
    books.issue_now(organization_id, [ANN], 3)
    books.make_users(BOB)
    books.execute(
        books.and_told(
            f"INSERT INTO users (email, email_key, first_name, last_name) VALUES ('{ANN}', '{ANN}', 'First', 'Last')"
        )
    )
    batch_id = books.queue_batch(organization_id, [BOB], 2)
    until(lambda: books.read_batch(organization_id, batch_id)[0].status == "issued", what="it is issued")
    until(lambda: books.balance_of_user(ANN) == 3, what="what was held is claimed")
    until(lambda: _unfolded() == 0, what="all is folded")
    assert books.balance_of_user(BOB) == 2
    assert books.breaches() == []


def _unfolded() -> int:
    return int(books.value("SELECT count(*) FROM unfolded_batches"))


@pytest.mark.usefixtures("beside")
def test_upkeep_that_fails_goes_on_with_the_next_look() -> None:
    organization_id = books.make_organization(100)
    batch_id = books.queue_batch(organization_id, [ANN], 2)
    with transaction() as connection:  # Its sweep is terminated while it waits.
        connection.exec_driver_sql("LOCK TABLE batches IN ACCESS EXCLUSIVE MODE")
        until(races.waiting, what="its sweep waits")
        for pid in races.waiting():
            connection.exec_driver_sql(f"SELECT pg_terminate_backend({pid})")
    until(lambda: books.read_batch(organization_id, batch_id)[0].status == "issued", what="it is issued")


def test_upkeep_whose_parent_is_gone_ends() -> None:
    command = [sys.executable, "-m", "worker.upkeep", "1"]
    assert subprocess.run(command, timeout=60, check=False).returncode == 0


def test_a_worker_whose_upkeep_is_killed_has_it_again_and_issues_unasked(worker: psutil.Process) -> None:
    [upkeep] = workers.upkeep_of(worker)
    organization_id = books.make_organization(100)
    batch_id = books.queue_batch(organization_id, [ANN], 10)
    upkeep.kill()
    until(lambda: books.read_batch(organization_id, batch_id)[0].status == "issued", what="it is issued")
    assert books.balance_of(organization_id) == 90


def test_upkeep_does_not_outlive_a_worker_that_is_killed(worker: psutil.Process) -> None:
    [upkeep] = workers.upkeep_of(worker)
    upkeep.resume()
    pool = workers.pool_of(worker)
    worker.send_signal(signal.SIGKILL)
    for process in (upkeep, *pool):
        process.wait(30)


def test_upkeep_that_hangs_does_not_hold_up_the_end_of_its_worker(worker: psutil.Process) -> None:
    [upkeep] = workers.upkeep_of(worker)  # It is suspended, so it answers nobody.
    worker.send_signal(signal.SIGTERM)
    assert worker.wait(10) == 0
    assert not upkeep.is_running()


def test_crossings_are_looked_for_among_the_users_of_the_time_that_is_said_and_counted(upkeep: ModuleType) -> None:
    books.issue_now(books.make_organization(100), [ANN, BOB], 1)
    books.execute(
        books.and_told(
            "INSERT INTO users (email, email_key, first_name, last_name, created_at)"
            f" VALUES ('{ANN}', '{ANN}', 'First', 'Last', now() - interval '16 minutes'),"
            f" ('{BOB}', '{BOB}', 'First', 'Last', now() - interval '14 minutes')"
        )
    )
    for _ in range(2):
        upkeep.claim_crossed(registered_within_s=900.0)
        assert (books.balance_of_user(ANN), books.balance_of_user(BOB)) == (0, 1)
        assert books.counted() == {"points_claimed_crossed": 1}


def test_a_fold_goes_in_a_bounded_number_of_steps(upkeep: ModuleType, monkeypatch: pytest.MonkeyPatch) -> None:
    folded: list[int] = []

    def note(connection: Connection) -> int:
        folded.append(fold_once(connection))
        return folded[-1]

    fold_once = fold.fold
    monkeypatch.setattr(fold, "fold", note)
    monkeypatch.setattr(fold, "BATCHES_MAX", 1)
    monkeypatch.setattr(upkeep, "_FOLD_STEPS_MAX", 3)
    books.make_users(ANN)
    organization_id = books.make_organization(100)
    for _ in range(4):
        books.issue_now(organization_id, [ANN], 1)
    upkeep.fold_credits()
    assert folded == [1, 1, 1]
    upkeep.fold_credits()
    assert folded == [1, 1, 1, 1, 0]
    assert books.balance_of_user(ANN) == 4


def test_upkeep_numbers_events_and_drops_old_ones(upkeep: ModuleType, events: list[MutableMapping[str, Any]]) -> None:
    organization_id = books.make_organization(100)
    books.issue_now(organization_id, [ANN], 1)
    upkeep.number_all()
    assert len(rendered(organization_id)) == 3
    books.rewrite(
        "UPDATE events SET created_at = now() - interval '91 days' WHERE organization_id > 0",
    )
    upkeep.drop_old_events()
    assert rendered(organization_id) == []
    assert [event["events"] for event in events if event["event"] == "events_dropped"] == [3]
    books.issue_now(organization_id, [ANN], 1)
    upkeep.number_all()
    assert [event["sequence"] for event in events_of(organization_id)] == [4]


def test_a_drain_whose_events_cannot_be_numbered_is_done_all_the_same(
    upkeep: ModuleType, monkeypatch: pytest.MonkeyPatch, events: list[MutableMapping[str, Any]]
) -> None:
    organization_id = books.make_organization(100)
    batch_id = books.queue_batch(organization_id, [ANN], 1)

    def fails(*_: object) -> int:
        raise OperationalError("", None, Exception())

    monkeypatch.setattr("worker.tasks.number_events", fails)
    assert upkeep.drain_and_tell(organization_id) == ([batch_id], False)
    assert "events_not_numbered" in {event["event"] for event in events}
    monkeypatch.undo()
    assert "batch.issued" in types_of(organization_id)
