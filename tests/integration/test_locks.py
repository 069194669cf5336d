"""The row locks: who waits for whom, in which order, and that nobody waits for ever."""

import itertools
import random
import threading
from collections.abc import Callable
from functools import partial

import pytest
from sqlalchemy import Connection
from sqlalchemy.exc import OperationalError

from app import api_keys, organizations
from app.ledger.claim import claim
from app.ledger.refill import refill
from app.postgres import connections
from app.postgres.database import transaction
from tests.conftest import Servers, forget_everything
from tests.deadline import TIMEOUT_S
from tests.integration import books, races
from tests.integration.plans import use_no_index

pytestmark = pytest.mark.usefixtures("database")

ANN = "ann@example.com"


# Less than PostgreSQL lets anybody wait for a lock.
_AT_ONCE_S = 5.0


def test_a_refill_waits_for_a_drain_and_adds_to_what_it_left() -> None:
    organization_id = books.make_organization(100)
    books.queue_batch(organization_id, [ANN], 30)

    def refill_fifty() -> int:
        return books.run(refill, organization_id, 50)

    assert races.behind(lambda drain: books.issue(drain, organization_id), refill_fifty) == 120
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
        assert drained.result(TIMEOUT_S) == [batch_id]
    batch, _ = books.read_batch(organization_id, batch_id)
    assert (batch.debited_count, batch.current_balance, batch.last_refill) == (1, 30, 60)
    assert batch.issued_at is not None
    assert batch.issued_at > refilled_at, "it is issued when it is paid, and not when its drain began to wait"
    assert books.breaches() == []


def test_a_drain_waits_for_a_suspension_and_then_refuses() -> None:
    organization_id = books.make_organization(100)
    batch_id = books.queue_batch(organization_id, [ANN], 30)

    def suspend(connection: Connection) -> None:
        organizations.change(connection, organization_id, {"is_suspended": True})

    assert races.behind(suspend, lambda: books.drain_all(organization_id)) == [batch_id]
    assert books.read_batch(organization_id, batch_id)[0].status == "refused"
    assert books.balance_of(organization_id) == 100


def test_a_suspension_waits_for_a_drain_and_refuses_only_what_comes_after() -> None:
    organization_id = books.make_organization(100)
    before = books.queue_batch(organization_id, [ANN], 30)
    races.behind(
        lambda drain: books.issue(drain, organization_id), lambda: books.set_flags(organization_id, is_suspended=True)
    )
    after = books.issue_now(organization_id, [ANN], 30)
    statuses = [books.read_batch(organization_id, batch_id)[0].status for batch_id in (before, after)]
    assert statuses == ["issued", "refused"]


def test_a_batch_issued_by_the_owner_waited_for_is_not_issued_again(monkeypatch: pytest.MonkeyPatch) -> None:
    # As if the ownership of the drain had failed: the second worker gets as far as the row lock.
    another = itertools.count()
    monkeypatch.setattr("app.postgres.locks.number", lambda *_: next(another))
    organization_id = books.make_organization(100)
    batch_id = books.queue_batch(organization_id, [ANN], 30)

    def issue_again() -> list[int] | None:
        return books.run(books.issue, organization_id, only=batch_id)

    assert races.behind(lambda owner: books.issue(owner, organization_id), issue_again) == []
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
def test_what_changes_no_balance_waits_for_no_lock_of_the_row(write: Callable[[int], int], holder: str) -> None:
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
        assert start(lambda: books.drain_all(other)).result(TIMEOUT_S) == [theirs]


EMAILS = [f"{n}@example.com" for n in range(1, 41)]


def _fold() -> Callable[[], object]:
    """Prepare a fold for every user, the last one first."""
    books.issue_now(1, list(reversed(EMAILS)), 1)
    return books.fold


def _claim() -> Callable[[], object]:
    """Prepare a claim for every user, the last one first, of points that their registration passed by."""
    books.rewrite("UPDATE users SET email_key = email_key || '.invalid'")
    books.issue_now(1, EMAILS, 1)
    books.rewrite("UPDATE users SET email_key = email")

    def claim_all() -> int:
        with transaction() as connection:
            return claim(connection, list(range(40, 0, -1)), [1]).transactions

    return claim_all


def _not_locked(table: str, column: str) -> list[int]:
    with transaction() as connection:
        statement = f"SELECT {column} FROM {table} FOR NO KEY UPDATE SKIP LOCKED"
        return sorted(connection.exec_driver_sql(statement).scalars())


whatever_plans = races.first_of("plans", ["no index", "any plan"])


@pytest.mark.parametrize("prepare", [_fold, _claim], ids=["fold", "claim"])
@whatever_plans
def test_balances_are_changed_in_the_order_of_their_users_whatever_the_order_of_the_addresses(
    prepare: Callable[[], Callable[[], object]], plans: str, servers: Servers, monkeypatch: pytest.MonkeyPatch
) -> None:
    if plans == "no index":
        use_no_index(servers, monkeypatch)
    books.make_users(*EMAILS)
    books.issue_now(books.make_organization(100), EMAILS, 1)
    books.fold()
    run = prepare()
    # An updated row moves to another place in its page, so that reading the table is not reading by id.
    books.execute("UPDATE user_balances SET points = points WHERE mod(user_id, 2) = 1")
    with races.started() as start:
        with transaction() as holder:
            holder.exec_driver_sql("SELECT FROM user_balances WHERE user_id = 20 FOR NO KEY UPDATE")
            running = start(run)
            races.until_waiting()
            assert _not_locked("user_balances", "user_id") == list(range(21, 41))
        running.result(TIMEOUT_S)
    assert [books.balance_of_user(email) for email in EMAILS] == [2] * 40
    assert books.breaches() == []


@whatever_plans
def test_a_claim_locks_its_users_in_the_order_of_their_ids_before_it_writes_anything(
    plans: str, servers: Servers, monkeypatch: pytest.MonkeyPatch
) -> None:
    if plans == "no index":
        use_no_index(servers, monkeypatch)
    books.make_users(*EMAILS)
    books.make_organization(100)
    run = _claim()
    books.execute("UPDATE users SET created_at = created_at WHERE mod(id, 2) = 1")
    seen: list[list[int]] = []
    with (
        races.before_statement("UPDATE transactions", lambda: seen.append(_not_locked("users", "id"))),
        races.started() as start,
    ):
        with transaction() as holder:
            holder.exec_driver_sql("SELECT FROM users WHERE id = 20 FOR NO KEY UPDATE")
            running = start(run)
            races.until_waiting()
            assert _not_locked("users", "id") == list(range(21, 41))
        running.result(TIMEOUT_S)
    assert seen == [[]]
    assert [books.balance_of_user(email) for email in EMAILS] == [1] * 40


def test_a_fold_and_a_reversal_lock_no_user() -> None:
    organization_id = books.make_organization(100)
    books.make_users(ANN)
    folded, unfolded = (books.issue_now(organization_id, [ANN], 10) for _ in range(2))
    with races.started() as start, transaction() as holder:
        holder.exec_driver_sql("SELECT FROM users FOR UPDATE")
        assert start(books.fold).result(TIMEOUT_S) == 1
        for batch_id in (folded, unfolded):
            books.queue_reversal(organization_id, batch_id=batch_id, amount=3)
        assert len(start(lambda: books.drain_all(organization_id)).result(TIMEOUT_S)) == 2
    assert books.balance_of_user(ANN) == 14
    assert books.breaches() == []


@pytest.mark.usefixtures("many_connections", "no_failure")
def test_organizations_that_pay_the_same_users_in_opposite_orders_never_deadlock() -> None:
    # Without ORDER BY where a drain locks its users, they would be locked in an order that depends on
    # the addresses of the drain; test_two_orders_of_locking_deadlock_and_the_count_shows_it is that case.
    emails = [f"{n}@example.com" for n in range(60)]
    books.make_users(*emails)
    organization_ids = [books.make_organization(10**9) for _ in range(4)]
    before = books.deadlocks()

    def send_often(organization_id: int) -> int:
        choice = random.Random(organization_id)  # noqa: S311  # Repeatable is what is wanted.
        sent = 0
        for _ in range(25):
            recipients = choice.sample(emails, choice.randint(20, 60))
            books.issue_now(organization_id, recipients, 1)
            sent += len(recipients)
        return sent

    sent = races.at_once(*[partial(send_often, organization_id) for organization_id in organization_ids])
    assert books.deadlocks() == before
    assert sum(books.balance_of_user(email) for email in emails) == sum(sent)
    assert books.breaches() == []


@pytest.mark.usefixtures("many_connections", "no_failure")
def test_two_orders_of_locking_deadlock_and_the_count_shows_it() -> None:
    books.make_users("1@example.com", "2@example.com")
    before = books.deadlocks()

    def lock(first: int, then: int) -> str | None:
        with transaction() as connection:
            connection.exec_driver_sql("SELECT FROM users WHERE id = %s FOR NO KEY UPDATE", (first,))
            meeting.wait(TIMEOUT_S)
            try:
                connection.exec_driver_sql("SELECT FROM users WHERE id = %s FOR NO KEY UPDATE", (then,))
            except OperationalError as error:
                return getattr(error.orig, "sqlstate", None)
        return None

    meeting = threading.Barrier(2)
    assert set(races.at_once(partial(lock, 1, 2), partial(lock, 2, 1))) == {None, "40P01"}
    assert books.deadlocks() == before + 1


@pytest.mark.usefixtures("many_connections", "no_failure")
def test_imports_that_meet_on_the_same_addresses_in_opposite_orders_never_deadlock(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    for timeout in ("LOCK_TIMEOUT_MS", "STATEMENT_TIMEOUT_MS"):  # A busy machine is no deadlock.
        monkeypatch.setattr(connections, timeout, 120_000)
    forget_everything()
    emails = [f"{n}@example.com" for n in range(400)]
    before = books.deadlocks()
    for attempt in range(2):
        fresh = [f"{attempt}-{email}" for email in emails]
        races.at_once(partial(books.make_users, *fresh), partial(books.make_users, *reversed(fresh)))
    assert books.deadlocks() == before
