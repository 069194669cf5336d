"""Claims on a real PostgreSQL: held points are credited once their address is registered."""

import pytest

from app import users
from app.ledger.claim import claim, register, users_with_held
from app.postgres.database import transaction
from tests.integration import books, races

pytestmark = pytest.mark.usefixtures("database")

ANN, BOB = "ann@example.com", "bob@example.com"


def _claim(user_ids: list[int]) -> int:
    with transaction() as connection:
        return claim(connection, user_ids)


def test_registering_credits_held_transactions_on_the_same_ids_without_a_second_debit() -> None:
    organization_id = books.make_organization(100)
    batch_ids = [books.issue_now(organization_id, [BOB, ANN], amount) for amount in (10, 15)]
    before = [books.read_batch(organization_id, batch_id)[1] for batch_id in batch_ids]
    [user_id] = books.make_users(ANN)
    after = [books.read_batch(organization_id, batch_id)[1] for batch_id in batch_ids]
    assert [[row.id for row in rows] for rows in after] == [[row.id for row in rows] for rows in before]
    for (held, claimed), (still_held, credited) in zip(before, after, strict=True):
        assert still_held == held
        assert (claimed.debited, claimed.credited, claimed.claimed, claimed.user_id) == (True, False, False, None)
        assert (credited.debited, credited.credited, credited.claimed) == (True, True, True)
        assert credited.user_id == user_id
        assert credited.balance == claimed.balance
    assert books.balance_of_user(ANN) == 25
    assert books.balance_of(organization_id) == 50
    assert books.breaches() == []


def test_registering_claims_from_every_organization_that_holds_points_for_the_address() -> None:
    for amount in (10, 15):
        books.issue_now(books.make_organization(100), [ANN], amount)
    books.make_users(ANN)
    assert books.balance_of_user(ANN) == 25
    assert books.breaches() == []


def test_an_address_in_other_letters_is_the_same_address() -> None:
    books.issue_now(books.make_organization(100), ["ANN@Example.COM"], 10)
    books.make_users("Ann@example.com")
    assert books.balance_of_user("aNN@example.com") == 10


def test_several_registered_at_once_get_each_their_own() -> None:
    organization_id = books.make_organization(100)
    books.issue_now(organization_id, [ANN, BOB, ANN], 10)
    books.make_users(ANN, BOB)
    assert books.balance_of_user(ANN) == 20
    assert books.balance_of_user(BOB) == 10
    assert books.breaches() == []


def test_registering_an_address_again_registers_and_credits_nobody() -> None:
    books.issue_now(books.make_organization(100), [ANN], 10)
    books.make_users(ANN)
    with transaction() as connection:
        assert register(connection, [users.new_user(ANN, "Another", "Name")]) == []
    assert books.balance_of_user(ANN) == 10


def test_sandbox_transactions_are_never_claimed() -> None:
    organization_id = books.make_organization(100, sandbox_balance=100)
    batch_id = books.issue_now(organization_id, [ANN], 10, sandbox=True)
    [user_id] = books.make_users(ANN)
    assert _claim([user_id]) == 0
    _, [row] = books.read_batch(organization_id, batch_id, sandbox=True)
    assert (row.debited, row.credited, row.claimed, row.user_id) == (True, False, False, None)
    assert books.balance_of_user(ANN) == 0
    with transaction() as connection:
        assert users_with_held(connection, registered_within_s=None) == []
        assert users_with_held(connection, registered_within_s=60) == []


def test_undebited_transactions_are_never_claimed() -> None:
    organization_id = books.make_organization(10)
    batch_id = books.issue_now(organization_id, [BOB, ANN], 10)
    [user_id] = books.make_users(ANN)
    assert _claim([user_id]) == 0
    _, [_, row] = books.read_batch(organization_id, batch_id)
    assert (row.debited, row.credited, row.claimed, row.user_id) == (False, False, False, None)
    assert books.balance_of_user(ANN) == 0
    with transaction() as connection:
        assert users_with_held(connection, registered_within_s=None) == []
        assert users_with_held(connection, registered_within_s=60) == []


def test_a_claim_leaves_what_is_held_for_others() -> None:
    organization_id = books.make_organization(100)
    batch_id = books.issue_now(organization_id, [ANN, BOB], 10)
    books.make_users(ANN)
    _, [_, other] = books.read_batch(organization_id, batch_id)
    assert (other.debited, other.credited, other.user_id) == (True, False, None)


def test_claiming_again_credits_nothing() -> None:
    books.issue_now(books.make_organization(100), [ANN], 10)
    [user_id] = books.make_users(ANN)
    assert _claim([user_id]) == 0
    assert books.balance_of_user(ANN) == 10


def test_a_claim_credits_so_many_and_the_next_goes_on_from_there(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("app.ledger.claim.CLAIM_ROWS_MAX", 3)
    organization_id = books.make_organization(100)
    for _ in range(4):
        books.issue_now(organization_id, [ANN, BOB], 10)
    books.execute(
        "INSERT INTO users (email, email_key, first_name, last_name)"
        f" SELECT a, a, 'First', 'Last' FROM unnest(ARRAY['{ANN}', '{BOB}']) AS a"
    )
    claimed = [_claim([1, 2])]
    assert books.breaches() == []
    claimed += [_claim([1, 2]) for _ in range(3)]
    assert claimed == [3, 3, 2, 0]
    assert (books.balance_of_user(ANN), books.balance_of_user(BOB)) == (40, 40)
    assert books.breaches() == []


def test_a_registration_credits_all_that_is_held_at_once_however_many_claims_it_takes(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr("app.ledger.claim.CLAIM_ROWS_MAX", 2)
    organization_id = books.make_organization(100)
    for _ in range(4):
        books.issue_now(organization_id, [ANN], 10)
    books.make_users(ANN)
    assert books.balance_of_user(ANN) == 40
    assert books.breaches() == []


def test_of_two_claims_at_once_the_second_waits_and_finds_nothing_held() -> None:
    organization_id = books.make_organization(100)
    books.issue_now(organization_id, [ANN, BOB], 10)
    # Registered past the service, so that the points stay held until they are claimed here.
    books.execute(
        "INSERT INTO users (email, email_key, first_name, last_name)"
        f" SELECT a, a, 'First', 'Last' FROM unnest(ARRAY['{BOB}', '{ANN}']) AS a"
    )
    with races.started() as start:
        with transaction() as connection:
            assert claim(connection, [1, 2]) == 2
            second = start(lambda: _claim([2, 1]))
            races.until_waiting()
        assert second.result() == 0
    assert (books.balance_of_user(ANN), books.balance_of_user(BOB)) == (10, 10)
    assert books.breaches() == []
