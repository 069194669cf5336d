"""What is scheduled is released when it is due, is in no drain's way, and is cancelled or issued, never both."""

import threading
from collections import Counter
from datetime import UTC, datetime, timedelta
from types import ModuleType

import pytest
from sqlalchemy import Connection

from app.batches import awaiting, schedule
from app.batches.batch import IDEMPOTENCY_KEY_KEPT_DAYS, forget_idempotency_keys
from app.batches.queue import count_queued
from app.errors import BatchConflict
from app.messaging import process_redis, requests
from app.postgres.database import transaction
from app.scope import Scope
from tests.integration import books, races

pytestmark = pytest.mark.usefixtures("database")

ANN = "ann@example.com"
_DAY = timedelta(days=1)


def _schedule(organization_id: int, *, amount: int = 1, sandbox: bool = False, key: str | None = None) -> int:
    """Schedule a batch for tomorrow and return its id."""
    moment = datetime.now(UTC) + _DAY
    return books.queue_batch(organization_id, [ANN], amount, sandbox=sandbox, idempotency_key=key, send_at=moment)


def _come(interval: str = "1 s", *ids: int) -> None:
    """Let the moment of these batches, or of all that are scheduled, have been so long ago."""
    which = f"id IN ({', '.join(map(str, ids))})" if ids else "true"
    books.move_scheduled(f"clock_timestamp() - interval '{interval}'", which)


def _release(*, at_most: int = 100) -> list[int]:
    return books.run(schedule.release_due, at_most=at_most)


def _cancel(organization_id: int, batch_id: int, *, sandbox: bool = False) -> bool:
    """Cancel a batch; tell whether that was possible."""
    try:
        books.run(schedule.cancel, batch_id, Scope(organization_id, sandbox=sandbox))
    except BatchConflict:
        return False
    return True


def _status(organization_id: int, batch_id: int) -> str:
    return books.read_batch(organization_id, batch_id)[0].status


def test_what_is_due_is_released_longest_due_first_and_issued_in_order_of_acceptance() -> None:
    organization_id = books.make_organization(100)
    ids = [_schedule(organization_id) for _ in range(3)]
    at_once = books.queue_batch(organization_id, [ANN], 1)
    for number, batch_id in enumerate(ids):
        _come(f"{10 + number} s", batch_id)  # The last accepted has been due for longest.
    assert len(_release(at_most=2)) == 2
    assert [_status(organization_id, one) for one in ids] == ["scheduled", "queued", "queued"]
    assert len(_release(at_most=2)) == 1
    assert books.drain_all(organization_id) == [*ids, at_once]


def test_a_release_leaves_alone_what_is_being_cancelled_and_does_not_wait_for_it() -> None:
    organization_id = books.make_organization(100)
    cancelled, other = _schedule(organization_id), _schedule(organization_id)
    _come()
    with transaction() as connection:
        schedule.cancel(connection, cancelled, Scope(organization_id, sandbox=False))
        assert _release() == [organization_id]
        assert _status(organization_id, other) == "queued"
    assert _release() == []
    assert books.drain_all(organization_id) == [other]
    assert _status(organization_id, cancelled) == "cancelled"


def test_two_releases_at_once_share_what_is_due() -> None:
    organization_id = books.make_organization(1_000)
    ids = [_schedule(organization_id) for _ in range(60)]
    _come()
    released = races.at_once(*[lambda: _release(at_most=30) for _ in range(2)])
    while step := _release():
        released.append(step)
    assert sum(map(len, released)) == 60
    assert sorted(books.drain_all(organization_id)) == ids


def test_a_cancellation_waits_for_a_drain_and_then_finds_the_batch_issued() -> None:
    organization_id = books.make_organization(100)
    batch_id = books.queue_batch(organization_id, [ANN], 10)
    is_cancelled = races.behind(
        lambda drain: books.issue(drain, organization_id), lambda: _cancel(organization_id, batch_id)
    )
    assert is_cancelled is False
    assert _status(organization_id, batch_id) == "issued"
    assert books.breaches() == []


def test_a_drain_waits_for_a_cancellation_and_then_issues_the_others() -> None:
    organization_id = books.make_organization(100)
    batch_id, other = (books.queue_batch(organization_id, [ANN], 10) for _ in range(2))

    def cancel(connection: Connection) -> None:
        schedule.cancel(connection, batch_id, Scope(organization_id, sandbox=False))

    assert races.behind(cancel, lambda: books.drain_all(organization_id)) == [other]
    assert (_status(organization_id, batch_id), books.balance_of(organization_id)) == ("cancelled", 90)


class _Crossing:
    """Some batches of an organization, of which each is cancelled while drains and releases go on.

    `outcomes` tells by the batch whether it could be cancelled. Each cancellation comes a little later than the one
    before, or sooner if that one came too late: so they stay near the moment at which a drain takes the batch.
    """

    def __init__(self, organization_id: int, count: int) -> None:
        self.organization_id, self.count = organization_id, count
        self.outcomes: dict[int, bool] = {}
        self._is_done = threading.Event()

    def send_and_cancel(self) -> None:
        wait_s = 0.001
        for number in range(self.count):
            if number % 3:
                batch_id = books.queue_batch(self.organization_id, [ANN], 1)
            else:  # It is released, drained and cancelled at the same time.
                batch_id = _schedule(self.organization_id)
                _come("0 s", batch_id)
            self._is_done.wait(wait_s)
            self.outcomes[batch_id] = _cancel(self.organization_id, batch_id)
            wait_s = min(0.05, wait_s * 1.25 + 0.0001) if self.outcomes[batch_id] else wait_s * 0.75
        self._is_done.set()

    def drain(self) -> None:
        while not self._is_done.is_set():
            books.drain_all(self.organization_id)

    def release(self) -> None:
        while not self._is_done.is_set():
            _release(at_most=5)


@pytest.mark.usefixtures("many_connections", "no_failure")
@races.first_of("counts", [[100], [250] * 4])
def test_cancellations_that_cross_the_drain_end_as_cancelled_or_issued_never_both_never_neither(
    counts: list[int],
) -> None:
    organization_id = books.make_organization(10_000)
    outcomes: dict[int, bool] = {}
    for count in counts:
        crossing = _Crossing(organization_id, count)
        races.at_once(crossing.send_and_cancel, crossing.drain, crossing.release)
        outcomes |= crossing.outcomes
    while _release():
        pass
    books.drain_all(organization_id)
    statuses = {batch_id: _status(organization_id, batch_id) for batch_id in outcomes}
    assert len(statuses) == sum(counts)
    assert {batch_id: status == "cancelled" for batch_id, status in statuses.items()} == outcomes
    tally = Counter(statuses.values())
    assert set(tally) == {"cancelled", "issued"}, "else it has not crossed"
    assert min(tally.values()) > sum(counts) // 20, tally
    assert books.balance_of(organization_id) == 10_000 - tally["issued"]
    assert books.counts() == (0, tally["issued"])
    assert books.breaches() == []


def test_a_released_batch_has_waited_since_its_moment_and_not_since_it_was_accepted() -> None:
    organization_id = books.make_organization(100)
    batch_id = _schedule(organization_id)
    books.execute(f"UPDATE batches SET created_at = now() - interval '300 days' WHERE id = {batch_id}")
    _come("3 s")
    _release()
    with transaction() as connection:
        oldest_s = count_queued(connection).oldest_s
    assert oldest_s is not None
    assert 3 <= oldest_s < 30


def test_a_key_lives_from_the_end_of_its_batch_on_and_is_kept_while_the_batch_waits() -> None:
    organization_id = books.make_organization(100)
    issued, cancelled, waits = (_schedule(organization_id, key=key) for key in ("issued", "cancelled", "waits"))
    books.execute("UPDATE organizations SET approval_above = 0, approval_of = 'all'")
    rejected = books.queue_batch(organization_id, [ANN], 1, idempotency_key="rejected")
    books.execute("UPDATE batches SET created_at = now() - interval '300 days'")
    books.run(awaiting.reject_unanswered, at_most=9)
    _come("1 s", issued)
    _release()
    books.drain_all(organization_id)
    _cancel(organization_id, cancelled)
    assert _forget() == 0
    ends = (f"{end} = {end} - interval '31 days'" for end in ("issued_at", "cancelled_at", "rejected_at"))
    books.rewrite(f"UPDATE batches SET {', '.join(ends)}")
    assert _forget() == 3
    keys = [books.read_batch(organization_id, one)[0].idempotency_key for one in (issued, cancelled, rejected, waits)]
    assert keys == [None, None, None, "waits"]


def _forget() -> int:
    return books.run(forget_idempotency_keys, older_than_days=IDEMPOTENCY_KEY_KEPT_DAYS, at_most=100)


def test_upkeep_asks_for_one_drain_an_organization(upkeep: ModuleType, monkeypatch: pytest.MonkeyPatch) -> None:
    asked: list[object] = []

    def submit(job: object) -> bool:
        asked.append(job)
        return True

    monkeypatch.setattr(upkeep, "submit", submit)
    monkeypatch.setattr(upkeep, "_RELEASE_STEP", 2)
    one, other = books.make_organization(100), books.make_organization(100)
    ids = [(organization_id, _schedule(organization_id)) for organization_id in (one, one, one, other, one)]
    _come()
    upkeep.release()
    backlog = process_redis.redis().lrange(requests.BACKLOG, 0, -1)
    assert sorted(int(words) for words in backlog) == [one, other]
    assert len(asked) == 1, "one message brings a worker for all"
    assert {_status(*each) for each in ids} == {"queued"}
    process_redis.redis().flushdb()
    upkeep.release()
    assert len(asked) == 1, "nothing is due, so nothing is asked"


def test_without_a_broker_the_sweep_issues_what_is_due(upkeep: ModuleType, monkeypatch: pytest.MonkeyPatch) -> None:
    asked: list[object] = []

    def submit(job: object) -> bool:
        asked.append(job)
        return False

    monkeypatch.setattr(upkeep, "submit", submit)
    ids = [(organization_id, _schedule(organization_id)) for organization_id in map(books.make_organization, [100] * 3)]
    _come("2 s")
    upkeep.release()
    assert len(asked) == 1, "each attempt would wait for the broker"
    upkeep.sweep()
    assert {_status(*each) for each in ids} == {"issued"}
