"""What is held in full partitions is listed: no claim misses it, whatever is issued, claimed or reversed meanwhile."""

from datetime import UTC, datetime, timedelta

import pytest

from app.ledger import held_list
from app.ledger.claim import users_with_held
from app.postgres.database import transaction
from tests.integration import books

pytestmark = pytest.mark.usefixtures("small_partitions")

ANN, BOB, CEM = (f"{name}@example.com" for name in ("ann", "bob", "cem"))


def _fill_partition() -> None:
    """Have the next batch begin another partition."""
    books.execute("SELECT setval('batches_id_seq', (SELECT last_value FROM batches_id_seq) + 64)")


def _list_all() -> None:
    """Run the upkeep as often as it takes: to tell issues, and to list."""
    for _ in range(2):
        held_list.list_full()


def _listed() -> list[int]:
    with transaction() as connection:
        statement = "SELECT transaction_id FROM held_transactions ORDER BY transaction_id"
        return list(connection.exec_driver_sql(statement).scalars())


def _listed_to() -> int:
    return int(books.value("SELECT listed_to FROM held_listing"))


def test_what_is_held_in_a_full_partition_is_listed_and_claimed() -> None:
    organization_id = books.make_organization(1_000, sandbox_balance=100)
    books.make_users(CEM)
    for sandbox in (False, True):
        books.issue_now(organization_id, [ANN, BOB, CEM], 1, sandbox=sandbox)
    _list_all()
    assert (_listed(), _listed_to()) == ([], 0), "the newest partition has an index"
    _fill_partition()
    books.issue_now(organization_id, [ANN, BOB], 10)
    _list_all()
    assert len(_listed()) == 5, "nobody of the sandbox is known"
    assert books.breaches() == []
    books.make_users(ANN)
    assert books.balance_of_user(ANN) == 11
    assert len(_listed()) == 4
    books.fold_claims()
    assert books.breaches() == []


def test_what_is_issued_late_in_a_full_partition_is_listed_by_its_issue() -> None:
    organization_id = books.make_organization(1_000)
    later = datetime.now(UTC) + timedelta(days=1)
    books.queue_batch(organization_id, [ANN], 1, send_at=later)
    queued = books.queue_batch(organization_id, [ANN, BOB], 10)
    _fill_partition()
    books.queue_batch(organization_id, [BOB], 100)
    _list_all()
    assert _listed_to() == 64
    assert books.drain_all(organization_id)[0] == queued
    assert len(_listed()) == 2
    books.make_users(ANN, BOB)
    assert (books.balance_of_user(ANN), books.balance_of_user(BOB)) == (10, 110)
    assert _listed() == []


def test_nothing_is_listed_before_the_issues_that_were_not_told_have_ended() -> None:
    organization_id = books.make_organization(1_000)
    books.queue_batch(organization_id, [ANN], 1)
    with transaction() as connection:
        assert books.issue(connection, organization_id) is not None  # It has not committed.
        _fill_partition()
        books.queue_batch(books.make_organization(), [BOB], 1)
        _list_all()
        _list_all()
        assert _listed_to() == 0
    _list_all()
    assert (_listed_to(), len(_listed())) == (64, 1)
    books.make_users(ANN)
    assert books.balance_of_user(ANN) == 1


def test_what_is_listed_and_no_longer_held_is_not_claimed() -> None:
    organization_id = books.make_organization(1_000)
    reversed_ = books.issue_now(organization_id, [ANN, BOB], 1)
    books.issue_now(organization_id, [ANN], 10, hold_days=1)
    _fill_partition()
    books.issue_now(organization_id, [ANN], 100)
    _list_all()
    assert len(_listed()) == 3
    books.reverse_now(organization_id, batch_id=reversed_)
    assert len(_listed()) == 1
    # As if the list had been written from a state of before the reversal.
    books.execute("DELETE FROM held_transactions", _LIST_STALE)
    books.let_days_pass(2)
    books.return_unclaimed()
    books.make_users(ANN, BOB)
    assert (books.balance_of_user(ANN), books.balance_of_user(BOB)) == (100, 0)
    books.fold_claims()
    assert books.breaches() == []


_LIST_STALE = """
    INSERT INTO held_transactions
    SELECT organization_id, transaction_id(batch_id, position), held_hash(email, false, 0) FROM transactions
    WHERE batch_id < 64
"""


def test_points_of_a_crossed_registration_are_found_in_the_list_too() -> None:
    organization_id = books.make_organization(1_000)
    books.issue_now(organization_id, [ANN], 1)
    _fill_partition()
    books.issue_now(organization_id, [BOB], 1)
    _list_all()
    for email in (ANN, BOB):
        books.execute(
            books.and_told(
                "INSERT INTO users (email, email_key, first_name, last_name)"
                f" VALUES ('{email}', '{email}', 'First', 'Last')"
            )
        )
    for within_s in (60.0, None):
        with transaction() as connection:
            assert len(users_with_held(connection, registered_within_s=within_s)) == 2
    books.claim_crossed()
    assert (books.balance_of_user(ANN), books.balance_of_user(BOB)) == (1, 1)
    assert _listed() == []
