"""What is scheduled is released when it is due, is in no drain's way, and is cancelled or issued, never both."""

import threading
from collections import Counter
from datetime import UTC, datetime, timedelta
from types import ModuleType

import pytest
from sqlalchemy import Connection, text

from app.batches import read as batches
from app.batches import schedule
from app.batches.queue import count_queued
from app.errors import BatchConflict
from app.messaging import process_redis, requests
from app.postgres.database import single_statement, transaction
from tests.deadline import until
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
    with transaction() as connection:
        return schedule.release_due(connection, at_most=at_most)


def _cancel(organization_id: int, batch_id: int, *, sandbox: bool = False) -> bool:
    """Cancel a batch; tell whether that was possible."""
    try:
        with transaction() as connection:
            schedule.cancel(connection, batch_id, organization_id=organization_id, sandbox=sandbox)
    except BatchConflict:
        return False
    return True


def _status(organization_id: int, batch_id: int) -> str:
    return books.read_batch(organization_id, batch_id)[0].status


def test_no_drain_takes_what_is_scheduled_and_a_release_takes_only_what_is_due() -> None:
    organization_id = books.make_organization(100)
    due, tomorrow = _schedule(organization_id), _schedule(organization_id)
    assert books.drain_all(organization_id) == []
    assert not books.has_due(organization_id)
    assert _release() == []
    _come("1 s", due)
    assert books.drain_all(organization_id) == [], "it is not released yet"
    assert _release() == [organization_id]
    assert _release() == []
    assert books.drain_all(organization_id) == [due]
    assert [_status(organization_id, one) for one in (due, tomorrow)] == ["issued", "scheduled"]
    assert books.balance_of(organization_id) == 99
    assert books.breaches() == []


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
        schedule.cancel(connection, cancelled, organization_id=organization_id, sandbox=False)
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
        schedule.cancel(connection, batch_id, organization_id=organization_id, sandbox=False)

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


def test_of_many_thousand_scheduled_batches_a_drain_and_a_release_read_none() -> None:
    organization_id = books.make_organization(1_000)
    books.execute(
        "INSERT INTO batches (organization_id, sandbox, status, amount, atomic, recipient_count, emails, send_at)"
        f" SELECT {organization_id}, false, 'scheduled', 1, false, 1, ARRAY['{ANN}'],"
        " now() + make_interval(days => 1, secs => n) FROM generate_series(1, 20000) n",
        "ANALYZE batches",
    )
    batch_id = books.queue_batch(organization_id, [ANN], 1)
    before = _rows_and_blocks()
    assert books.drain_all(organization_id) == [batch_id]
    assert _release() == []
    rows, blocks = (after - then for after, then in zip(_rows_and_blocks(), before, strict=True))
    assert rows < 50
    assert blocks < 200
    with transaction() as connection:
        counted = schedule.count_scheduled(connection)
    assert (counted.batches, counted.oldest_overdue_s) == (20_000, 0)


def _rows_and_blocks() -> tuple[int, int]:
    """Return how many rows of batches, and blocks of them and of their indexes, PostgreSQL has looked at so far."""
    with transaction() as connection:
        connection.exec_driver_sql("SELECT pg_stat_force_next_flush()")
    with transaction() as connection:
        rows, blocks = connection.execute(_SEEN).one()
        return int(rows), int(blocks)


_SEEN = text("""
    SELECT t.seq_tup_read + t.idx_tup_fetch, heap_blks_read + heap_blks_hit + idx_blks_read + idx_blks_hit
    FROM pg_stat_user_tables t JOIN pg_statio_user_tables USING (relid) WHERE t.relname = 'batches'
""")


def test_what_is_scheduled_is_counted_for_one_organization_and_mode_and_for_those_who_watch() -> None:
    one, other = books.make_organization(100), books.make_organization(100)
    for amount in (1, 2**62, 2**62):
        _schedule(one, amount=amount)
    _schedule(one, amount=7, sandbox=True)
    _schedule(other)
    late = _schedule(other)
    _come("90 s", late)
    with single_statement() as connection:
        live, sandbox = (schedule.scheduled_of(connection, one, sandbox=mode) for mode in (False, True))
        assert (live.batches, live.amount) == (3, 2**63 - 1)
        assert (sandbox.batches, sandbox.amount) == (1, 7)
        counted = schedule.count_scheduled(connection)
        assert counted.batches == 6
        assert 90 <= counted.oldest_overdue_s < 120
        assert count_queued(connection).batches == 0


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


def test_the_key_of_a_scheduled_batch_lives_from_its_issue_on_and_that_of_a_cancelled_one_from_then() -> None:
    organization_id = books.make_organization(100)
    issued, cancelled, waits = (_schedule(organization_id, key=key) for key in ("issued", "cancelled", "waits"))
    books.execute("UPDATE batches SET created_at = now() - interval '300 days'")
    _come("1 s", issued)
    _release()
    books.drain_all(organization_id)
    _cancel(organization_id, cancelled)
    assert _forget() == 0
    books.execute(
        *books.WITHOUT_GUARDS,
        "UPDATE batches SET issued_at = issued_at - interval '31 days',"
        " cancelled_at = cancelled_at - interval '31 days'",
        *books.WITH_GUARDS,
    )
    assert _forget() == 2
    keys = [books.read_batch(organization_id, one)[0].idempotency_key for one in (issued, cancelled, waits)]
    assert keys == [None, None, "waits"]


def _forget() -> int:
    with transaction() as connection:
        return batches.forget_idempotency_keys(
            connection, older_than_days=batches.IDEMPOTENCY_KEY_KEPT_DAYS, at_most=100
        )


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


@pytest.mark.long
@pytest.mark.usefixtures("worker")
def test_what_is_released_is_brought_to_a_worker_by_a_message(upkeep: ModuleType) -> None:
    """The upkeep of this worker is suspended, so it sweeps nothing."""
    organization_id = books.make_organization(100)
    batch_id = _schedule(organization_id)
    _come("1 hour")
    upkeep.release()
    until(lambda: _status(organization_id, batch_id) == "issued", what="it is issued")
