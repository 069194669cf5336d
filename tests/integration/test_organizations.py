"""Organizations: their flags, balances and refills, and what a person reads of them."""

import pytest

from app.ledger.refill import Booked, refill_once, reset_sandbox
from tests.integration import books, races

pytestmark = pytest.mark.usefixtures("database", "balanced")


@pytest.mark.usefixtures("many_connections")
def test_resets_and_issues_at_once_leave_the_books_balanced() -> None:
    organization_id = books.make_organization(sandbox_balance=50)

    def reset() -> None:
        books.run(reset_sandbox, organization_id)

    def issue() -> None:
        books.issue_now(organization_id, ["ann@example.com"], 7, sandbox=True)

    races.at_once(*[reset, issue] * 4)


@pytest.mark.parametrize("sandbox", [False, True])
def test_a_refill_with_a_reference_is_booked_once_however_many_give_it_at_once(*, sandbox: bool) -> None:
    organization_id = books.make_organization(5, sandbox_balance=5)

    def give() -> Booked:
        return books.run(refill_once, organization_id, 10, sandbox=sandbox, reference="invoice-7")

    outcomes = races.at_once(*[give] * 8)
    assert sorted(booked.is_new for booked in outcomes) == [False] * 7 + [True]
    assert {booked.refill.balance for booked in outcomes} == {15}
    assert books.balance_of(organization_id, sandbox=sandbox) == 15
