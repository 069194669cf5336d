"""Many workers at once: who owns a drain, and that every batch is issued once."""

import itertools
from collections.abc import Iterable
from functools import partial
from itertools import chain

import pytest
from sqlalchemy import Connection

from app import organizations
from app.ledger.drain import drain
from app.ledger.issue import Outcome, issue
from app.ledger.refill import refill
from app.postgres.connections import engine
from app.postgres.database import transaction
from tests.deadline import TIMEOUT_S
from tests.integration import books, races

pytestmark = pytest.mark.usefixtures("database", "balanced")

ANN = "ann@example.com"


def _debited_counts(organization_id: int, batch_ids: Iterable[int]) -> list[int | None]:
    return [books.read_batch(organization_id, batch_id)[0].debited_count for batch_id in batch_ids]


@pytest.mark.usefixtures("many_connections", "no_failure")
def test_workers_that_drain_one_organization_at_once_issue_every_batch_once(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("app.ledger.issue.BATCHES_MAX", 3)
    organization_id = books.make_organization(1_000)
    queued = [books.queue_batch(organization_id, [ANN], 1) for _ in range(50)]
    announced = races.at_once(*[partial(books.drain_all, organization_id)] * 4)
    assert sorted(batch_id for one in announced for batch_id in one) == queued
    assert _debited_counts(organization_id, queued) == [1] * 50


@pytest.mark.usefixtures("many_connections", "no_failure")
def test_the_row_lock_alone_keeps_workers_from_debiting_twice(monkeypatch: pytest.MonkeyPatch) -> None:
    # As if the ownership of the drain had failed: 32 workers, each with all 32 batches before its eyes.
    another = itertools.count()
    monkeypatch.setattr("app.postgres.locks.number", lambda *_: next(another))
    organization_id = books.make_organization(100)
    batch_ids = [books.queue_batch(organization_id, [ANN], 100) for _ in range(32)]

    def issue_without_owning_the_drain(batch_id: int) -> list[int] | None:
        return books.run(books.issue, organization_id, only=batch_id)

    issued = races.at_once(*[partial(issue_without_owning_the_drain, batch_id) for batch_id in batch_ids])
    assert issued == [[batch_id] for batch_id in batch_ids]
    counts = _debited_counts(organization_id, batch_ids)
    assert (counts.count(1), counts.count(0)) == (1, 31)


@pytest.mark.usefixtures("many_connections", "no_failure")
def test_refills_and_sends_at_once_lose_no_point() -> None:
    organization_id = books.make_organization(50)

    def refill_often() -> list[int]:
        for _ in range(20):
            books.run(refill, organization_id, 7)
        return []

    def send_often() -> list[int]:
        return [books.issue_now(organization_id, [ANN, "bob@example.com"], 5) for _ in range(20)]

    batch_ids = races.at_once(refill_often, send_often, refill_often, send_often, refill_often, send_often)
    counts = _debited_counts(organization_id, chain(*batch_ids))
    debited = [count for count in counts if count is not None]
    assert len(debited) == 60
    assert books.balance_of(organization_id) == 50 + 60 * 7 - 5 * sum(debited)


@pytest.mark.usefixtures("many_connections", "no_failure")
def test_sends_around_a_suspension_are_each_issued_or_refused_and_never_half() -> None:
    organization_id = books.make_organization(1_000)

    def suspend_and_resume() -> list[int]:
        for is_suspended in [True, False] * 15:
            books.run(organizations.change, organization_id, {"is_suspended": is_suspended})
        return []

    def send_often() -> list[int]:
        return [books.issue_now(organization_id, [ANN], 3) for _ in range(20)]

    batch_ids = chain(*races.at_once(suspend_and_resume, send_often, send_often))
    seen = [books.read_batch(organization_id, batch_id) for batch_id in batch_ids]
    assert {batch.status for batch, _ in seen} <= {"issued", "refused"}
    assert all(len(transactions) == int(batch.status == "issued") for batch, transactions in seen)
    issued = sum(batch.status == "issued" for batch, _ in seen)
    assert books.balance_of(organization_id) == 1_000 - 3 * issued


def test_a_worker_that_finds_the_drain_owned_leaves_at_once_and_leaves_the_batch_to_the_owner() -> None:
    organization_id = books.make_organization(100)
    batch_id = books.queue_batch(organization_id, [ANN], 1)
    with races.started() as start, transaction() as owner:
        assert races.own_drain(owner, organization_id)
        # The owner also holds the row, so that a worker that did not leave would wait here.
        refill(owner, organization_id, 1)
        assert start(partial(drain, organization_id, announce=_nobody)).result(TIMEOUT_S) is False
    assert books.read_batch(organization_id, batch_id)[0].status == "queued"


def test_to_have_owned_a_drain_on_the_same_connection_before_is_not_to_own_it() -> None:
    organization_id = books.make_organization(100)
    with engine().connect() as connection:
        for amount in (1, 2):
            books.queue_batch(organization_id, [ANN], amount)
            with connection.begin():
                assert books.issue(connection, organization_id) == [amount]
        left = books.queue_batch(organization_id, [ANN], 3)
        with transaction() as owner:
            assert races.own_drain(owner, organization_id)
            with connection.begin():
                assert books.issue(connection, organization_id) is None
        assert books.read_batch(organization_id, left)[0].status == "queued"
        with connection.begin():
            assert books.issue(connection, organization_id) == [left]


def test_to_own_a_drain_is_not_to_own_that_of_another_organization() -> None:
    mine, other = books.make_organization(100), books.make_organization(100)
    theirs = books.queue_batch(other, [ANN], 1)
    with transaction() as connection, transaction() as owner:
        assert races.own_drain(owner, other)
        assert books.issue(connection, mine) == []
        assert books.issue(connection, other) is None
    assert books.read_batch(other, theirs)[0].status == "queued"


def test_a_refill_that_holds_the_row_does_not_turn_a_worker_away() -> None:
    # The trap of SKIP LOCKED: the worker would leave, and nobody would look at the queue again.
    organization_id = books.make_organization(100)
    batch_id = books.queue_batch(organization_id, [ANN], 1)
    drained = races.behind(
        lambda connection: refill(connection, organization_id, 1), lambda: books.drain_all(organization_id)
    )
    assert drained == [batch_id]


def test_a_batch_between_the_owners_last_look_and_release_is_not_stranded(monkeypatch: pytest.MonkeyPatch) -> None:
    # The latest moment there is: the owner is about to commit. The new batch's worker finds the drain
    # owned and leaves. Had the owner looked for the last time from inside, nobody would come for it.
    organization_id = books.make_organization(100)
    first = books.queue_batch(organization_id, [ANN], 1)
    late: list[int] = []

    def issue_and_come_late(connection: Connection, organization_id: int) -> list[Outcome] | None:
        monkeypatch.undo()
        issued = issue(connection, organization_id)
        late.append(books.queue_batch(organization_id, [ANN], 2))
        assert drain(organization_id, announce=_nobody) is False
        assert books.read_batch(organization_id, late[0])[0].status == "queued"
        return issued

    monkeypatch.setattr("app.ledger.drain.issue", issue_and_come_late)
    issued = books.drain_all(organization_id)
    assert issued == [first, *late]


def test_a_batch_that_comes_while_others_are_tried_singly_is_not_stranded(monkeypatch: pytest.MonkeyPatch) -> None:
    organization_id = books.make_organization(100)
    first = books.queue_batch(organization_id, [ANN], 1)
    late: list[int] = []

    def fail_once_and_come_late(
        connection: Connection, organization_id: int, *, only: int | None = None
    ) -> list[Outcome] | None:
        if only is None:
            raise RuntimeError
        monkeypatch.undo()
        late.append(books.queue_batch(organization_id, [ANN], 2))  # It is known already which are to be tried.
        return issue(connection, organization_id, only=only)

    monkeypatch.setattr("app.ledger.drain.issue", fail_once_and_come_late)
    assert books.rounds_of(organization_id) == [[first], late]
    assert not books.has_due(organization_id)


def _nobody(batch_ids: object, *_: object) -> None:
    raise AssertionError(f"{batch_ids} were announced by a worker that does not own the drain")
