"""Floors: while a snapshot is held open, a drain walks past few dead entries of the queue, and misses nothing."""

from datetime import UTC, datetime, timedelta
from importlib import import_module

import pytest
from sqlalchemy import Connection

from app.batches import queue, schedule
from app.ledger import floors as module
from app.ledger.drain import drain
from app.ledger.floors import Floors
from app.postgres.database import snapshot, transaction
from tests.integration import books

pytestmark = pytest.mark.usefixtures("database")

ANN = "ann@example.com"
_KEPT = 5
_WALKED = "SELECT pg_stat_get_xact_tuples_returned('ix_batches_queued'::regclass)"


@pytest.fixture(autouse=True)
def _few_batches_make_a_floor(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "_BATCHES", _KEPT)
    monkeypatch.setattr(module, "_WHOLE_EVERY_S", 3_600.0)


def _drain(organization_id: int, floors: Floors) -> list[int]:
    """Drain as a worker does for a front, and return what is final."""
    final: list[int] = []
    drain(organization_id, announce=lambda batch_ids, *_: final.extend(batch_ids), floors=floors)
    return final


def _issue(organization_id: int, floors: Floors, *, batches: int) -> None:
    for _ in range(batches):
        queued = books.queue_batch(organization_id, [ANN], 1)
        assert _drain(organization_id, floors) == [queued]


def _release() -> None:
    books.move_scheduled("clock_timestamp() - interval '1 s'")
    with transaction() as connection:
        assert len(schedule.release_due(connection, at_most=9)) == 1


def test_a_look_from_the_floor_walks_past_few_dead_entries_while_a_snapshot_is_held_open() -> None:
    organization_id, floors = books.make_organization(100), Floors()
    with snapshot() as held:
        held.exec_driver_sql("SELECT count(*) FROM batches")
        _issue(organization_id, floors, batches=40)
        floor = floors.floor(organization_id)
        with transaction() as connection:
            assert _walked(connection, organization_id, first=1) >= 40, "the entries of all that was issued are there"
            assert _walked(connection, organization_id, first=floor) <= _KEPT
    assert books.breaches() == []


def _walked(connection: Connection, organization_id: int, *, first: int) -> int:
    before = connection.exec_driver_sql(_WALKED).scalar_one()
    assert not queue.has_due(connection, organization_id, first=first)
    return int(connection.exec_driver_sql(_WALKED).scalar_one() - before)


@pytest.mark.parametrize("finds", ["the next look at all", "a sweep"])
def test_a_scheduled_batch_that_comes_back_below_the_floor_is_issued(
    monkeypatch: pytest.MonkeyPatch, finds: str
) -> None:
    organization_id, floors = books.make_organization(100), Floors()
    low = books.queue_batch(organization_id, [ANN], 1, send_at=datetime.now(UTC) + timedelta(days=1))
    _issue(organization_id, floors, batches=2 * _KEPT)
    _release()
    high = books.queue_batch(organization_id, [ANN], 1)
    assert _drain(organization_id, floors) == [high], "it looks from the floor on"
    if finds == "a sweep":
        assert books.drain_all(organization_id) == [low]
    else:
        monkeypatch.setattr(module, "_WHOLE_EVERY_S", 0.0)
        assert _drain(organization_id, floors) == [low]
        assert floors.floor(organization_id) == low, "there may be more of them"
    assert books.breaches() == []


def test_a_release_asks_for_a_look_from_the_beginning_and_a_call_for_one_from_the_floor(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    draining = import_module("worker.draining")  # Importing the worker ends a process that has no settings yet.
    organization_id, floors = books.make_organization(100), Floors()
    monkeypatch.setattr(draining, "_floors", floors)
    low = books.queue_batch(organization_id, [ANN], 1, send_at=datetime.now(UTC) + timedelta(days=1))
    _issue(organization_id, floors, batches=2 * _KEPT)
    _release()
    assert draining.drain_and_stay(organization_id, "of-a-call") == []
    assert draining.drain_and_stay(organization_id) == [low]


def test_no_reversal_passes_a_batch_that_came_back_below_the_floor() -> None:
    organization_id, floors = books.make_organization(100), Floors()
    low = books.queue_batch(organization_id, [ANN], 1, send_at=datetime.now(UTC) + timedelta(days=1))
    _issue(organization_id, floors, batches=2 * _KEPT)
    _release()
    reversal_id = books.queue_reversal(organization_id, batch_id=low)
    assert _drain(organization_id, floors) == [low, reversal_id]
    assert books.entries_of(reversal_id) == [(1, None)]
    assert books.breaches() == []


def test_a_process_keeps_the_floors_of_few_organizations() -> None:
    floors = Floors()
    for organization_id in range(1, 102):
        floors.note(organization_id, range(_KEPT))
    assert floors.floor(1) == module.LOWEST
    assert floors.floor(101) == 0
