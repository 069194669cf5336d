"""Credits that are folded into balances, and registrations that cross an issue."""

from functools import partial

import pytest
from sqlalchemy import text

from app import organizations, users
from app.ledger import fold as folding
from app.ledger.claim import claim_crossed, register, users_with_held
from app.ledger.fold import fold
from app.organizations import Held
from app.postgres import locks
from app.postgres.database import transaction
from app.scope import Scope
from tests.deadline import TIMEOUT_S
from tests.integration import books, races

pytestmark = pytest.mark.usefixtures("database", "balanced")

ANN, BOB = "ann@example.com", "bob@example.com"


def _folded_balance(email: str) -> int:
    with transaction() as connection:
        statement = text("""
            SELECT coalesce(sum(points), 0) FROM users JOIN user_balances ON user_id = id WHERE email_key = :email
        """)
        return int(connection.execute(statement, {"email": email}).scalar_one())


def test_a_credit_counts_at_once_and_moves_to_the_users_row_with_a_fold() -> None:
    books.make_users(ANN)
    organization_id = books.make_organization(100)
    books.issue_now(organization_id, [ANN, BOB], 10)
    books.issue_now(organization_id, [ANN], 20)
    assert (books.balance_of_user(ANN), _folded_balance(ANN)) == (30, 0)
    assert books.fold() == 1
    assert (books.balance_of_user(ANN), _folded_balance(ANN)) == (30, 30)
    assert books.fold() == 0
    assert books.balance_of_user(ANN) == 30


def test_a_fold_takes_no_more_than_its_caps_but_always_one_batch(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(folding, "BATCHES_MAX", 3)
    monkeypatch.setattr(folding, "RECIPIENTS_AT_ONCE", 2)
    books.make_users(ANN)
    organization_id = books.make_organization(100)
    for recipients in ([ANN], [ANN], [ANN], [ANN, BOB, "cid@example.com"], [ANN]):
        books.issue_now(organization_id, recipients, 1)
    steps = []
    for _ in range(4):
        with transaction() as connection:
            steps.append(folding.fold(connection))
        assert books.balance_of_user(ANN) == 5
        assert books.breaches() == []
    assert steps == [2, 2, 1, 0]


def test_balances_stay_exact_while_sends_claims_and_folds_run_at_once() -> None:
    organization_id = books.make_organization(1_000)
    emails = [f"{n}@example.com" for n in range(10)]
    books.make_users(*emails[:5])
    done: list[str] = []

    def send_often() -> int:
        for _ in range(20):
            books.issue_now(organization_id, emails, 1)
        done.append("sent")
        return 0

    def fold_until_done() -> int:
        steps = 0
        while not done:
            steps += books.fold()
            assert books.breaches() == []
        return steps

    races.at_once(send_often, fold_until_done, partial(books.make_users, *emails[5:]))
    books.claim_crossed()
    assert [books.balance_of_user(email) for email in emails] == [20] * 10
    books.fold()
    assert [_folded_balance(email) for email in emails] == [20] * 10


WINDOW_S = 900.0


def _assert_held_then_claimed_once(organization_id: int, batch_id: int) -> None:
    """Points are held for ANN, who is registered; a first sweep credits them, a second one nothing."""
    _, [row] = books.read_batch(organization_id, batch_id)
    assert (row.debited, row.credited, row.user_id) == (True, False, None)
    assert books.balance_of_user(ANN) == 0
    books.claim_crossed()
    _, [claimed] = books.read_batch(organization_id, batch_id)
    assert (claimed.id, claimed.debited, claimed.credited, claimed.claimed) == (row.id, True, True, True)
    books.claim_crossed()
    books.claim_crossed(registered_within_s=None)
    assert books.balance_of_user(ANN) == 10
    assert books.balance_of(organization_id) == 90
    assert books.breaches() == []


@pytest.mark.parametrize("email", [ANN, "Ann@Example.COM"])
def test_points_issued_while_a_registration_was_uncommitted_are_claimed_once(email: str) -> None:
    organization_id = books.make_organization(100)
    with transaction() as connection:
        register(connection, [users.new_user(ANN, "First", "Last")])
        # A drain that waited for the registration would hang here until its time limit.
        batch_id = books.issue_now(organization_id, [email], 10)
    _assert_held_then_claimed_once(organization_id, batch_id)


def test_points_of_an_issue_that_was_uncommitted_at_the_registration_are_claimed_once() -> None:
    organization_id = books.make_organization(100)
    batch_id = books.queue_batch(organization_id, [ANN], 10)
    with transaction() as connection:
        assert books.issue(connection, organization_id) == [batch_id]
        books.make_users(ANN)
    _assert_held_then_claimed_once(organization_id, batch_id)


def test_new_users_are_looked_at_often_and_old_ones_only_with_all() -> None:
    books.issue_now(books.make_organization(100), [ANN, BOB], 10)
    books.execute(
        books.and_told(
            "INSERT INTO users (email, email_key, first_name, last_name, created_at) VALUES"
            f" ('{ANN}', '{ANN}', 'First', 'Last', now() - interval '{WINDOW_S + 60} s'),"
            f" ('{BOB}', '{BOB}', 'First', 'Last', now() - interval '{WINDOW_S - 60} s')"
        )
    )
    with transaction() as connection:
        assert users_with_held(connection, registered_within_s=WINDOW_S) == [2]
        assert sorted(users_with_held(connection, registered_within_s=None)) == [1, 2]
        assert len(users_with_held(connection, registered_within_s=None, limit=1)) == 1
    books.claim_crossed()
    assert (books.balance_of_user(ANN), books.balance_of_user(BOB)) == (0, 10)
    books.claim_crossed(registered_within_s=None)
    assert (books.balance_of_user(ANN), books.balance_of_user(BOB)) == (10, 10)


def test_a_look_at_all_finds_users_under_every_spelling_and_each_of_them_once() -> None:
    organization_id = books.make_organization(100)
    for _ in range(3):
        books.issue_now(organization_id, [ANN.upper()], 1)
    books.issue_now(organization_id, [BOB], 1)
    books.execute(
        books.and_told(
            "INSERT INTO users (email, email_key, first_name, last_name)"
            f" SELECT a, a, 'First', 'Last' FROM unnest(ARRAY['{ANN}', '{BOB}']) AS a"
        )
    )
    with transaction() as connection:
        assert sorted(users_with_held(connection, registered_within_s=None, limit=2)) == [1, 2]


def test_a_second_look_of_a_kind_leaves_it_to_the_first_and_one_of_another_kind_does_not() -> None:
    organization_id = books.make_organization(100)
    with transaction() as connection:
        register(connection, [users.new_user(ANN, "First", "Last")])
        books.issue_now(organization_id, [ANN], 10)
    with transaction() as first, transaction() as second:
        locks.wait_for(first, locks.Kind.CROSSED_SEARCH, 60)
        assert claim_crossed(second, registered_within_s=60.0) == 0
        assert claim_crossed(second, registered_within_s=900.0) == 1
    assert books.balance_of_user(ANN) == 10


def test_a_claim_and_a_fold_of_one_user_wait_for_each_other_and_lose_neither_credit() -> None:
    organization_id = books.make_organization(100)
    books.issue_now(organization_id, [ANN], 10)
    books.execute(
        books.and_told(
            f"INSERT INTO users (email, email_key, first_name, last_name) VALUES ('{ANN}', '{ANN}', 'First', 'Last')"
        )
    )
    books.issue_now(organization_id, [ANN], 7)
    races.behind(fold, books.claim_crossed)
    assert books.balance_of_user(ANN) == 17


@races.first_of("attempt", range(5))
def test_registrations_and_issues_at_once_credit_every_point_once(attempt: int) -> None:
    organization_id = books.make_organization(1_000)
    emails = [f"{attempt}-{n}@example.com" for n in range(20)]
    for _ in range(3):
        books.queue_batch(organization_id, emails, 10)
    races.at_once(
        lambda: books.drain_all(organization_id),
        lambda: books.make_users(*emails[:15]),
        lambda: books.make_users(*reversed(emails[5:])),
        books.claim_crossed,
    )
    books.claim_crossed()
    assert [books.balance_of_user(email) for email in emails] == [30] * 20


def _held(organization_id: int, *, sandbox: bool = False) -> Held:
    """Return what is kept as held; the audit proves that it is the sum of the held transactions."""
    assert books.breaches() == []
    return books.run(organizations.held_of, Scope(organization_id, sandbox))


def test_a_claim_is_held_no_longer_and_waits_for_no_organization(many_connections: None) -> None:
    organization_id, other_id = books.make_organization(100), books.make_organization(100)
    batch_id = books.issue_now(organization_id, [ANN, BOB], 10)
    books.reverse_now(organization_id, batch_id=batch_id, amount=3)
    books.issue_now(other_id, [ANN], 5)
    with races.started() as start, transaction() as connection:
        locks.lock_organization(connection, organization_id)
        start(lambda: books.make_users(ANN)).result(TIMEOUT_S)
        books.fold_claims()  # It leaves the locked organization alone.
    for _ in range(2):
        assert (_held(organization_id), _held(other_id)) == (Held(1, 7), Held(0, 0))
        books.fold_claims()
    assert books.value("SELECT count(*) FROM unfolded_claims") == 0
