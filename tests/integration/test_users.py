"""Users: how they are registered and found, what they claim, and a change of an address beside an issue."""

from functools import partial

import pytest

from app import users
from app.errors import SandboxUserLimit, UserConflict
from app.ledger import sandbox
from app.ledger.claim import Claimed, claim, claim_crossed, users_with_held
from app.ledger.registering import change_user
from app.postgres.database import transaction
from app.values.addresses import parse
from tests.deadline import TIMEOUT_S
from tests.integration import books, races

pytestmark = pytest.mark.usefixtures("database")

ANN, BOB = "ann@example.com", "bob@example.com"


def _insert(*emails: str) -> list[int]:
    return books.run(users.insert_new, [users.new_user(email, "First", "Last") for email in emails])


@pytest.mark.parametrize(
    ("registered", "asked"),
    [
        ("Ann@Example.com", "aNN@eXAMPLE.COM"),
        (ANN, f"  {ANN}\n"),
        ("ann@bücher.example", "ANN@xn--bcher-kva.example"),
        ("jo\u0308rg@example.com", "JÖRG@example.com"),
    ],
)
def test_a_user_is_found_under_every_spelling_of_the_address(registered: str, asked: str) -> None:
    _insert(registered)
    with transaction() as connection:
        assert users.get(connection, asked).email == registered
    assert _insert(asked) == []


def test_of_two_registrations_of_one_address_at_once_the_second_waits_and_registers_nobody() -> None:
    with races.started() as start:
        with transaction() as connection:
            users.insert_new(connection, [users.new_user(ANN, "First", "Last")])
            second = start(partial(_insert, BOB, ANN))
            races.until_waiting()
        assert len(second.result(TIMEOUT_S)) == 1
    with transaction() as connection:
        assert users.get(connection, BOB).id != users.get(connection, ANN).id


def _claim(user_ids: list[int]) -> int:
    with transaction() as connection:
        return claim(connection, user_ids, [1]).transactions


@pytest.mark.parametrize("sandbox", [True, False], ids=["of the sandbox", "not debited"])
def test_what_is_of_the_sandbox_or_not_debited_is_never_claimed(*, sandbox: bool) -> None:
    organization_id = books.make_organization(10, sandbox_balance=100)
    batch_id = books.issue_now(organization_id, [BOB, ANN], 10, sandbox=sandbox)
    [user_id] = books.make_users(ANN)
    assert _claim([user_id]) == 0
    _, [_, row] = books.read_batch(organization_id, batch_id, sandbox=sandbox)
    assert (row.debited, row.credited, row.claimed, row.user_id) == (sandbox, False, False, None)
    assert books.balance_of_user(ANN) == 0
    with transaction() as connection:
        for seconds in (None, 60):
            assert users_with_held(connection, registered_within_s=seconds) == []


def _register_past_the_service(*emails: str) -> None:
    """Register so that points stay held until a test claims them."""
    names = ", ".join(f"'{email}'" for email in emails)
    columns = "INSERT INTO users (email, email_key, first_name, last_name)"
    books.execute(books.and_told(f"{columns} SELECT a, a, 'First', 'Last' FROM unnest(ARRAY[{names}]) AS a"))


def test_a_claim_credits_so_many_and_the_next_goes_on_from_there(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("app.ledger.claim.CLAIM_ROWS_MAX", 3)
    organization_id = books.make_organization(100)
    for _ in range(4):
        books.issue_now(organization_id, [ANN, BOB], 10)
    _register_past_the_service(ANN, BOB)
    claimed = [_claim([1, 2])]
    assert books.breaches() == []
    claimed += [_claim([1, 2]) for _ in range(3)]
    assert claimed == [3, 3, 2, 0]
    assert (books.balance_of_user(ANN), books.balance_of_user(BOB)) == (40, 40)
    assert books.breaches() == []


def test_a_user_of_the_sandbox_claims_all_of_it_and_is_one_of_so_many(monkeypatch: pytest.MonkeyPatch) -> None:
    for name, value in (("claim.CLAIM_ROWS_MAX", 1), ("sandbox.CLAIM_ROWS_MAX", 1), ("sandbox.USERS_MAX", 1)):
        monkeypatch.setattr(f"app.ledger.{name}", value)
    organization_id = books.make_organization(sandbox_balance=30)
    for _ in range(3):
        books.issue_now(organization_id, [ANN], 10, sandbox=True)
    ann, bob = (users.new_user(email, "First", "Last") for email in (ANN, BOB))
    registered, is_new, claimed = books.run(sandbox.register, organization_id, ann)
    assert (is_new, claimed) == (True, Claimed(3, 30))
    assert books.run(sandbox.register, organization_id, ann) == (registered, False, claimed)
    with pytest.raises(UserConflict):
        books.run(sandbox.register, organization_id, users.new_user(ANN, "Other", "Last"))
    with pytest.raises(SandboxUserLimit):
        books.run(sandbox.register, organization_id, bob)
    assert books.breaches() == []


def test_of_two_claims_at_once_the_second_waits_and_finds_nothing_held() -> None:
    organization_id = books.make_organization(100)
    books.issue_now(organization_id, [ANN, BOB], 10)
    _register_past_the_service(BOB, ANN)
    with races.started() as start:
        with transaction() as connection:
            assert claim(connection, [1, 2], [1]) == (2, 20)
            second = start(lambda: _claim([2, 1]))
            races.until_waiting()
        assert second.result() == 0
    assert (books.balance_of_user(ANN), books.balance_of_user(BOB)) == (10, 10)
    assert books.breaches() == []


def test_a_change_that_crosses_an_issue_is_claimed_by_the_search_of_late_registrations() -> None:
    organization_id = books.make_organization(100)
    [ann] = books.make_users(ANN)
    books.execute("UPDATE users SET created_at = created_at - interval '1 hour'")
    books.issue_now(organization_id, [ANN], 1)
    with transaction() as connection:
        assert change_user(connection, ann, {"address": parse(BOB)}).claimed == Claimed(0, 0)
        # The issue does not see the new address yet, nor the change the new transaction.
        books.issue_now(organization_id, [ANN, BOB], 10)
    assert books.balance_of_user(BOB) == 11
    with transaction() as connection:
        assert users_with_held(connection, registered_within_s=60) == [ann]
        assert claim_crossed(connection, registered_within_s=60) == 1
    assert books.balance_of_user(BOB) == 21
    assert books.breaches() == []


def test_an_address_changed_back_and_forth_claims_each_time_what_is_new() -> None:
    organization_id = books.make_organization(100)
    [ann] = books.make_users(ANN)
    balances = []
    for email in (BOB, ANN, BOB):
        books.issue_now(organization_id, [ANN, BOB], 1)
        with transaction() as connection:
            balances.append(change_user(connection, ann, {"address": parse(email)}).user.balance)
    assert balances == [2, 4, 6]
    assert books.breaches() == []
