"""Organizations: their flags, balances and refills, and what a person reads of them."""

import pytest
from sqlalchemy import text

from app import organizations
from app.errors import Refused
from app.ledger.refill import Booked, refill, refill_once, reset_sandbox
from app.postgres.database import transaction
from app.settings import INT64_MAX
from tests.integration import books, races

pytestmark = pytest.mark.usefixtures("database")


both_modes = pytest.mark.parametrize("sandbox", [False, True], ids=["live", "sandbox"])


@pytest.mark.parametrize("amount", [0, -1, -INT64_MAX])
@both_modes
def test_a_refill_of_less_than_one_point_is_refused(*, sandbox: bool, amount: int) -> None:
    organization_id = books.make_organization(5, sandbox_balance=5)
    with pytest.raises(Refused, match="at least 1 point"), transaction() as connection:
        refill(connection, organization_id, amount, sandbox=sandbox)
    assert books.balance_of(organization_id, sandbox=sandbox) == 5


@both_modes
def test_a_balance_can_be_filled_to_64_bits_and_not_a_point_further(*, sandbox: bool) -> None:
    organization_id = books.make_organization(5, sandbox_balance=5)
    with transaction() as connection:
        assert refill(connection, organization_id, INT64_MAX - 5, sandbox=sandbox) == INT64_MAX
    with pytest.raises(Refused, match="over 9223372036854775807"), transaction() as connection:
        refill(connection, organization_id, 1, sandbox=sandbox)
    assert books.balance_of(organization_id, sandbox=sandbox) == INT64_MAX
    assert books.breaches() == []


@pytest.mark.parametrize(("change", "amount"), [(-20, 20), (30, -30), (-50, 50)], ids=["spent", "refilled", "empty"])
def test_a_reset_takes_the_sandbox_back_to_its_start_by_a_refill_of_the_difference(*, change: int, amount: int) -> None:
    organization_id = books.make_organization(5, sandbox_balance=50)
    if change < 0:
        books.issue_now(organization_id, ["ann@example.com"], -change, sandbox=True)
    with transaction() as connection:
        if change > 0:
            refill(connection, organization_id, change, sandbox=True)
        assert reset_sandbox(connection, organization_id) == 50
        seen = organizations.get(connection, organization_id, sandbox=True)
        assert (seen.balance, seen.last_refill) == (50, 50)
        assert organizations.get(connection, organization_id, sandbox=False).balance == 5
        newest = text("SELECT amount, balance FROM refills WHERE sandbox ORDER BY id DESC LIMIT 1")
        assert connection.execute(newest).one() == (amount, 50)
    assert books.breaches() == []


def test_a_reset_of_a_sandbox_at_its_start_writes_nothing() -> None:
    organization_id = books.make_organization(sandbox_balance=50)
    with transaction() as connection:
        assert reset_sandbox(connection, organization_id) == 50
        assert connection.execute(text("SELECT count(*) FROM refills")).scalar_one() == 1
    assert books.breaches() == []


@pytest.mark.usefixtures("many_connections")
def test_resets_and_issues_at_once_leave_the_books_balanced() -> None:
    organization_id = books.make_organization(sandbox_balance=50)

    def reset() -> None:
        with transaction() as connection:
            reset_sandbox(connection, organization_id)

    def issue() -> None:
        books.issue_now(organization_id, ["ann@example.com"], 7, sandbox=True)

    races.at_once(*[reset, issue] * 4)
    assert books.breaches() == []


@both_modes
def test_a_refill_with_a_reference_is_booked_once_however_many_give_it_at_once(*, sandbox: bool) -> None:
    organization_id = books.make_organization(5, sandbox_balance=5)

    def give() -> Booked:
        with transaction() as connection:
            return refill_once(connection, organization_id, 10, sandbox=sandbox, reference="invoice-7")

    outcomes = races.at_once(*[give] * 8)
    assert sorted(booked.is_new for booked in outcomes) == [False] * 7 + [True]
    assert {booked.refill.balance for booked in outcomes} == {15}
    assert books.balance_of(organization_id, sandbox=sandbox) == 15
    assert books.breaches() == []


def test_a_reference_of_another_refill_is_refused_and_books_nothing() -> None:
    organization_id = books.make_organization(5, sandbox_balance=5)
    with transaction() as connection:
        refill_once(connection, organization_id, 10, reference="invoice-7")
    for amount, sandbox in ((11, False), (10, True)):
        with (
            pytest.raises(Refused, match="invoice-7 is that of a refill of 10 live points"),
            transaction() as connection,
        ):
            refill_once(connection, organization_id, amount, sandbox=sandbox, reference="invoice-7")
    assert (books.balance_of(organization_id), books.balance_of(organization_id, sandbox=True)) == (15, 5)
