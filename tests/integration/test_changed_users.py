"""A change of a user's address, beside issues and searches that run at the same time."""

import pytest

from app import users
from app.api.answers.envelope import success
from app.api.answers.platform import claimed_payload, user_payload
from app.ledger.claim import Claimed, claim_crossed, users_with_held
from app.ledger.registering import change_user
from app.postgres.database import transaction
from app.values.addresses import parse
from tests.integration import books

pytestmark = pytest.mark.usefixtures("database")

ANN, BOB = "ann@example.com", "bob@example.com"


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


def test_a_balance_beyond_64_bits_is_written_whole() -> None:
    [ann] = books.make_users(ANN)
    with transaction() as connection:
        user = users.get_by_id(connection, ann)
    rich = users.RegisteredUser(**{name: getattr(user, name) for name in user.__slots__} | {"balance": 10**25})
    shown = success(user_payload(rich), claimed=claimed_payload(Claimed(2, 2**63))).get_json()
    assert (shown["data"]["balance"], shown["additional_data"]["claimed"]["amount"]) == (10**25, 2**63)
