"""Folding: a user's balance is exact before, while and after its credits move to the user's row."""

from functools import partial

import pytest
from sqlalchemy import text

from app.ledger import fold
from app.postgres.database import transaction
from tests.integration import books, races

pytestmark = pytest.mark.usefixtures("database")

ANN, BOB = "ann@example.com", "bob@example.com"


def _folded_balance(email: str) -> int:
    with transaction() as connection:
        statement = text("SELECT folded_balance FROM users WHERE email_key = :email")
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
    assert books.breaches() == []


def test_the_sandbox_leaves_nothing_to_fold() -> None:
    books.make_users(ANN)
    books.issue_now(books.make_organization(sandbox_balance=100), [ANN], 10, sandbox=True)
    assert books.fold() == 0
    assert books.balance_of_user(ANN) == 0


def test_what_the_balance_did_not_pay_is_counted_neither_before_the_fold_nor_after() -> None:
    books.make_users(ANN, BOB)
    books.issue_now(books.make_organization(10), [ANN, BOB], 10)
    for folded in (0, 10):
        assert (books.balance_of_user(ANN), books.balance_of_user(BOB)) == (10, 0)
        assert (_folded_balance(ANN), _folded_balance(BOB)) == (folded, 0)
        assert books.breaches() == []
        books.fold()


def test_what_was_claimed_before_the_fold_is_counted_once() -> None:
    books.issue_now(books.make_organization(100), [ANN], 10)
    books.make_users(ANN)
    assert (books.balance_of_user(ANN), _folded_balance(ANN)) == (10, 10)
    books.fold()
    assert (books.balance_of_user(ANN), _folded_balance(ANN)) == (10, 10)
    assert books.breaches() == []


def test_a_fold_takes_no_more_than_its_caps_but_always_one_batch(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(fold, "BATCHES_MAX", 3)
    monkeypatch.setattr(fold, "RECIPIENTS_MAX", 2)
    books.make_users(ANN)
    organization_id = books.make_organization(100)
    for recipients in ([ANN], [ANN], [ANN], [ANN, BOB, "cid@example.com"], [ANN]):
        books.issue_now(organization_id, recipients, 1)
    steps = []
    for _ in range(4):
        with transaction() as connection:
            steps.append(fold.fold(connection))
        assert books.balance_of_user(ANN) == 5
        assert books.breaches() == []
    assert steps == [2, 2, 1, 0]


def test_a_second_fold_leaves_the_work_to_the_first() -> None:
    books.make_users(ANN)
    books.issue_now(books.make_organization(100), [ANN], 10)
    with transaction() as first, transaction() as second:
        assert fold.fold(first) == 1
        assert fold.fold(second) == 0


def test_a_fold_that_fails_leaves_every_balance_as_it_was() -> None:
    books.make_users(ANN)
    books.issue_now(books.make_organization(100), [ANN], 10)
    with transaction() as connection:
        fold.fold(connection)
        connection.rollback()
    assert (books.balance_of_user(ANN), _folded_balance(ANN)) == (10, 0)
    assert books.fold() == 1
    assert _folded_balance(ANN) == 10


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
    assert books.breaches() == []
