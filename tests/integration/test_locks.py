"""Who waits for whom: seen on the locks of PostgreSQL, never by sleeping."""

import itertools
from collections.abc import Callable

import pytest

from app import api_keys, organizations
from app.ledger.refill import refill
from app.postgres.database import transaction
from tests.integration import books, races

pytestmark = pytest.mark.usefixtures("database")

ANN = "ann@example.com"
# Less than PostgreSQL lets anybody wait for a lock.
_AT_ONCE_S = 5.0


def test_a_refill_waits_for_a_drain_and_adds_to_what_it_left() -> None:
    organization_id = books.make_organization(100)
    books.queue_batch(organization_id, [ANN], 30)

    def refill_fifty() -> int:
        with transaction() as connection:
            return refill(connection, organization_id, 50)

    with races.started() as start:
        with transaction() as connection:
            books.issue(connection, organization_id)
            refilled = start(refill_fifty)
            races.until_waiting()
        assert refilled.result(races.PATIENCE_S) == 120
    assert books.balance_of(organization_id) == 120
    assert books.breaches() == []


def test_a_drain_waits_for_a_refill_and_pays_from_the_new_balance() -> None:
    organization_id = books.make_organization(10)
    batch_id = books.queue_batch(organization_id, [ANN], 30)
    with races.started() as start:
        with transaction() as connection:
            refill(connection, organization_id, 50)
            drained = start(lambda: books.drain_all(organization_id))
            races.until_waiting()
            refilled_at = connection.exec_driver_sql("SELECT clock_timestamp()").scalar_one()
        assert drained.result(races.PATIENCE_S) == [batch_id]
    batch, _ = books.read_batch(organization_id, batch_id)
    assert (batch.debited_count, batch.current_balance, batch.last_refill) == (1, 30, 60)
    assert batch.issued_at is not None
    assert batch.issued_at > refilled_at, "it is issued when it is paid, and not when its drain began to wait"
    assert books.breaches() == []


def test_a_drain_waits_for_a_suspension_and_then_refuses() -> None:
    organization_id = books.make_organization(100)
    batch_id = books.queue_batch(organization_id, [ANN], 30)
    with races.started() as start:
        with transaction() as connection:
            organizations.set_flags(connection, organization_id, is_suspended=True)
            drained = start(lambda: books.drain_all(organization_id))
            races.until_waiting()
        assert drained.result(races.PATIENCE_S) == [batch_id]
    assert books.read_batch(organization_id, batch_id)[0].status == "refused"
    assert books.balance_of(organization_id) == 100


def test_a_suspension_waits_for_a_drain_and_refuses_only_what_comes_after() -> None:
    organization_id = books.make_organization(100)
    before = books.queue_batch(organization_id, [ANN], 30)

    def suspend() -> None:
        with transaction() as connection:
            organizations.set_flags(connection, organization_id, is_suspended=True)

    with races.started() as start:
        with transaction() as connection:
            assert books.issue(connection, organization_id) == [before]
            suspended = start(suspend)
            races.until_waiting()
        suspended.result(races.PATIENCE_S)
    after = books.issue_now(organization_id, [ANN], 30)
    statuses = [books.read_batch(organization_id, batch_id)[0].status for batch_id in (before, after)]
    assert statuses == ["issued", "refused"]


def test_what_was_queued_before_the_lock_and_issued_by_the_one_waited_for_is_not_issued_again(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    # As if the ownership of the drain had failed: the second worker gets as far as the row lock.
    another = itertools.count()
    monkeypatch.setattr("app.postgres.locks.number", lambda *_: next(another))
    organization_id = books.make_organization(100)
    batch_id = books.queue_batch(organization_id, [ANN], 30)

    def issue_again() -> list[int] | None:
        with transaction() as connection:
            return books.issue(connection, organization_id, only=batch_id)

    with races.started() as start:
        with transaction() as connection:
            assert books.issue(connection, organization_id) == [batch_id]
            again = start(issue_again)
            races.until_waiting()
        assert again.result(races.PATIENCE_S) == []
    assert books.balance_of(organization_id) == 70


def _make_key(organization_id: int) -> int:
    with transaction() as connection:
        return api_keys.create(connection, organization_id, sandbox=False)[0]


@pytest.mark.parametrize("holder", ["drain", "refill"])
@pytest.mark.parametrize(
    "write",
    [
        pytest.param(lambda organization_id: books.queue_batch(organization_id, [ANN], 30), id="a batch is accepted"),
        # A plain FOR UPDATE would hold up this INSERT, whose foreign key takes a share of the row's key.
        pytest.param(_make_key, id="a key is created"),
    ],
)
def test_what_changes_no_balance_waits_for_no_lock_of_the_organization_row(
    write: Callable[[int], int], holder: str
) -> None:
    organization_id = books.make_organization(100)
    books.queue_batch(organization_id, [ANN], 30)
    with races.started() as start, transaction() as connection:
        if holder == "drain":
            assert books.issue(connection, organization_id) == [1]
        else:
            refill(connection, organization_id, 1)
        assert start(lambda: write(organization_id)).result(_AT_ONCE_S) == 2


def test_drains_of_organizations_without_a_user_in_common_do_not_wait_for_each_other() -> None:
    mine, other = books.make_organization(100), books.make_organization(100)
    books.make_users(ANN, "bob@example.com")
    books.queue_batch(mine, [ANN, "nobody@example.com"], 1)
    theirs = books.queue_batch(other, ["bob@example.com", "nobody@example.com"], 1)
    with races.started() as start, transaction() as connection:
        books.issue(connection, mine)
        assert start(lambda: books.drain_all(other)).result(races.PATIENCE_S) == [theirs]
