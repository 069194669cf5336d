"""Many workers and operators at once: a test for each promise about a balance."""

import itertools
from collections.abc import Iterable
from functools import partial
from itertools import chain

import pytest

from app import organizations
from app.ledger import issue
from app.ledger.refill import refill
from app.postgres.database import transaction
from tests.integration import books, races

pytestmark = pytest.mark.usefixtures("many_connections", "no_failure")

ANN = "ann@example.com"


def _debited_counts(organization_id: int, batch_ids: Iterable[int]) -> list[int | None]:
    return [books.read_batch(organization_id, batch_id)[0].debited_count for batch_id in batch_ids]


def test_workers_that_drain_one_organization_at_once_issue_every_batch_once(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(issue, "BATCHES_MAX", 3)
    organization_id = books.make_organization(1_000)
    queued = [books.queue_batch(organization_id, [ANN], 1) for _ in range(50)]
    announced = races.at_once(*[partial(books.drain_all, organization_id)] * 4)
    assert sorted(batch_id for one in announced for batch_id in one) == queued
    assert _debited_counts(organization_id, queued) == [1] * 50
    assert books.breaches() == []


def test_of_32_sends_that_each_want_the_whole_balance_exactly_one_is_debited() -> None:
    organization_id = books.make_organization(100)
    books.make_users(ANN)
    # No sweep runs here: a batch is issued by its own worker, or by the one that this worker left it to.
    batch_ids = races.at_once(*[partial(books.issue_now, organization_id, [ANN], 100)] * 32)
    counts = _debited_counts(organization_id, batch_ids)
    assert (counts.count(1), counts.count(0)) == (1, 31)
    assert books.balance_of(organization_id) == 0
    assert books.balance_of_user(ANN) == 100
    assert books.breaches() == []


def test_the_row_lock_alone_keeps_workers_from_debiting_twice(monkeypatch: pytest.MonkeyPatch) -> None:
    # As if the ownership of the drain had failed: 32 workers, each with all 32 batches before its eyes.
    another = itertools.count()
    monkeypatch.setattr("app.postgres.locks.number", lambda *_: next(another))
    organization_id = books.make_organization(100)
    batch_ids = [books.queue_batch(organization_id, [ANN], 100) for _ in range(32)]

    def issue_without_owning_the_drain(batch_id: int) -> list[int] | None:
        with transaction() as connection:
            return books.issue(connection, organization_id, only=batch_id)

    issued = races.at_once(*[partial(issue_without_owning_the_drain, batch_id) for batch_id in batch_ids])
    assert issued == [[batch_id] for batch_id in batch_ids]
    counts = _debited_counts(organization_id, batch_ids)
    assert (counts.count(1), counts.count(0)) == (1, 31)
    assert books.breaches() == []


def test_refills_and_sends_at_once_lose_no_point() -> None:
    organization_id = books.make_organization(50)

    def refill_often() -> list[int]:
        for _ in range(20):
            with transaction() as connection:
                refill(connection, organization_id, 7)
        return []

    def send_often() -> list[int]:
        return [books.issue_now(organization_id, [ANN, "bob@example.com"], 5) for _ in range(20)]

    batch_ids = races.at_once(refill_often, send_often, refill_often, send_often, refill_often, send_often)
    counts = _debited_counts(organization_id, chain(*batch_ids))
    debited = [count for count in counts if count is not None]
    assert len(debited) == 60
    assert books.balance_of(organization_id) == 50 + 60 * 7 - 5 * sum(debited)
    assert books.breaches() == []


def test_sends_around_a_suspension_are_each_issued_or_refused_and_never_half() -> None:
    organization_id = books.make_organization(1_000)

    def suspend_and_resume() -> list[int]:
        for is_suspended in [True, False] * 15:
            with transaction() as connection:
                organizations.set_flags(connection, organization_id, is_suspended=is_suspended)
        return []

    def send_often() -> list[int]:
        return [books.issue_now(organization_id, [ANN], 3) for _ in range(20)]

    batch_ids = chain(*races.at_once(suspend_and_resume, send_often, send_often))
    seen = [books.read_batch(organization_id, batch_id) for batch_id in batch_ids]
    assert {batch.status for batch, _ in seen} <= {"issued", "refused"}
    assert all(len(transactions) == int(batch.status == "issued") for batch, transactions in seen)
    issued = sum(batch.status == "issued" for batch, _ in seen)
    assert books.balance_of(organization_id) == 1_000 - 3 * issued
    assert books.breaches() == []
