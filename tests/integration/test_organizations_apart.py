"""No organization waits for another: a claim or a fold waits for reversals of those alone whose points it moves."""

from collections.abc import Callable
from typing import Any

import pytest
from sqlalchemy import Connection

from app import users
from app.ledger import claim, held_list
from app.ledger import fold as folding
from app.ledger.claim import claim_crossed, register
from app.ledger.issue import reverse
from app.ledger.registering import change_user
from app.ledger.returns import due_returns, return_held
from app.postgres.database import transaction
from tests.deadline import TIMEOUT_S
from tests.integration import books, races

pytestmark = pytest.mark.usefixtures("many_connections", "no_failure", "balanced")

ANN, BOB, CID = (f"{name}@example.com" for name in ("ann", "bob", "cid"))


def _reverse(connection: Connection, organization_id: int, batch_id: int) -> None:
    books.queue_reversal(organization_id, batch_id=batch_id)
    assert reverse(connection, organization_id)


def _return(connection: Connection, organization_id: int, batch_id: int) -> None:
    books.let_days_pass(1)
    assert return_held(connection, due_returns(connection, at_most=1))


@pytest.mark.parametrize("take_back", [_reverse, _return])
def test_a_reversal_holds_up_the_registrations_of_its_own_organization_alone(
    take_back: Callable[[Connection, int, int], None],
) -> None:
    taking, other = books.make_organization(100), books.make_organization(100)
    batch_id = books.issue_now(taking, [ANN, BOB], 10, hold_days=1)
    books.issue_now(other, [BOB, CID], 7)
    with races.started() as start:
        with transaction() as connection:
            take_back(connection, taking, batch_id)
            # The points of a stranger, and those of another organization: nobody waits for what is not theirs.
            start(lambda: books.make_users("dan@example.com")).result(TIMEOUT_S)
            start(lambda: books.make_users(CID)).result(TIMEOUT_S)
            assert books.balance_of_user(CID) == 7
            ours = start(lambda: books.make_users(ANN, BOB))
            races.until_waiting()
        ours.result(TIMEOUT_S)
    assert [books.balance_of_user(email) for email in (ANN, BOB)] == [0, 7]
    assert books.balance_of(taking) == 100


def test_a_reversal_holds_up_the_folds_of_its_own_organization_alone() -> None:
    books.make_users(ANN)
    taking, other = books.make_organization(100), books.make_organization(100)
    batch_id = books.issue_now(taking, [ANN], 10)
    books.issue_now(other, [ANN], 7)
    with races.started() as start:
        with transaction() as connection:
            _reverse(connection, taking, batch_id)
            assert books.run(folding.fold) == 1
            rest = start(books.fold)
            races.until_waiting()
        assert rest.result(TIMEOUT_S) == 1
    assert books.balance_of_user(ANN) == 7


def test_a_busy_organization_leaves_the_others_their_share_of_a_fold(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(folding, "BATCHES_MAX", 6)
    books.make_users(ANN)
    busy, *others = (books.make_organization(100) for _ in range(3))
    for _ in range(8):
        books.issue_now(busy, [ANN], 1)
    for organization_id in others:
        books.issue_now(organization_id, [ANN], 1)
    left = []
    for _ in range(3):
        with transaction() as connection:
            folding.fold(connection)
            left.append(list(connection.exec_driver_sql(_LEFT).scalars()))
    assert left == [[busy] * 6, [], []]
    assert books.balance_of_user(ANN) == 10


_LEFT = "SELECT organization_id FROM unfolded_batches ORDER BY organization_id"


def test_more_organizations_than_a_claim_locks_are_claimed_from_by_the_search(monkeypatch: pytest.MonkeyPatch) -> None:
    for module in (claim, held_list):
        monkeypatch.setattr(module, "ORGANIZATIONS_MAX", 2)
    for email in (ANN, ANN, ANN, BOB, BOB):
        books.issue_now(books.make_organization(100), [email], 10)
    first = books.run(register, [users.new_user(email, "First", "Last") for email in (ANN, BOB)])
    assert (first.looked_at, len(first.user_ids), first.claimed.points) == (1, 1, 20)
    books.make_users(BOB)
    assert [books.balance_of_user(email) for email in (ANN, BOB)] == [20, 20]
    books.claim_crossed()
    assert books.balance_of_user(ANN) == 30


@races.first_of("attempt", range(3))
def test_claims_of_several_organizations_meet_their_folds_and_reversals_and_nobody_deadlocks(attempt: int) -> None:
    organizations = [books.make_organization(100_000) for _ in range(3)]
    emails = [f"{attempt}-{n}@example.com" for n in range(24)]
    user_ids = books.make_users(*emails[:8])
    for organization_id in organizations:
        for turn in (1, -1):
            batch_id = books.queue_batch(organization_id, emails[::turn], 10)
            books.queue_reversal(organization_id, batch_id=batch_id, amount=3)
    before = books.deadlocks()

    def change_addresses() -> None:
        for user_id, email in zip(user_ids, emails[16:], strict=True):
            books.run(change_user, user_id, {"address": users.new_user(email, "A", "").address})

    def search() -> None:
        books.run(claim_crossed, registered_within_s=None)

    calls: list[Callable[[], Any]] = [lambda: books.make_users(*emails[8:16]), change_addresses, search, search]
    races.at_once(*(lambda one=one: books.drain_all(one) for one in organizations), *calls, books.fold, books.fold)
    for organization_id in organizations:
        books.drain_all(organization_id)
    books.claim_crossed()
    books.fold()
    assert books.breaches() == []
    assert books.deadlocks() == before
