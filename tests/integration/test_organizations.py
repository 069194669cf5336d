"""Organizations: their flags, balances and refills, and what a person reads of them."""

import pytest
from sqlalchemy import text

from app import organizations
from app.errors import NotFound, Refused
from app.ledger.refill import Booked, refill, refill_once, reset_sandbox
from app.postgres.database import transaction
from app.settings import INT64_MAX
from tests.integration import books, races

pytestmark = pytest.mark.usefixtures("database")


def test_a_new_organization_has_no_points_and_may_issue() -> None:
    with transaction() as connection:
        organization_id = organizations.create(connection, "  Acme & Söhne ", sandbox_start_balance=50)
        for sandbox in (False, True):
            seen = organizations.get(connection, organization_id, sandbox=sandbox)
            assert (seen.id, seen.name, seen.balance, seen.last_refill) == (organization_id, "Acme & Söhne", 0, 0)
            assert (seen.is_disabled, seen.is_suspended) == (False, False)


@pytest.mark.parametrize("name", ["", " \t\n", "x" * 256, "with a NUL \0 in it", "\udcff"])
def test_a_name_that_is_none_is_refused(name: str) -> None:
    with transaction() as connection:
        with pytest.raises(Refused, match=r"^The name "):
            organizations.create(connection, name, sandbox_start_balance=0)
        assert organizations.find_all(connection, sandbox=False) == []


def test_a_name_may_have_255_characters_however_many_octets_they_take() -> None:
    with transaction() as connection:
        organization_id = organizations.create(connection, "ü" * 255, sandbox_start_balance=0)
        assert organizations.get(connection, organization_id, sandbox=False).name == "ü" * 255


def test_two_organizations_may_have_one_name() -> None:
    assert books.make_organization(name="Acme") != books.make_organization(name="Acme")


def test_each_mode_sees_the_balance_and_the_last_refill_of_its_own() -> None:
    organization_id = books.make_organization(100, sandbox_balance=50)
    books.issue_now(organization_id, ["ann@example.com"], 1)
    books.issue_now(organization_id, ["ann@example.com"], 2, sandbox=True)
    with transaction() as connection:
        live = organizations.get(connection, organization_id, sandbox=False)
        sandbox = organizations.get(connection, organization_id, sandbox=True)
    assert (live.balance, live.last_refill) == (99, 100)
    assert (sandbox.balance, sandbox.last_refill) == (48, 50)
    assert live.created_at == sandbox.created_at


def test_all_organizations_are_listed_oldest_first_as_a_mode_sees_them() -> None:
    first = books.make_organization(1, sandbox_balance=10, name="Zeta")
    second = books.make_organization(2, sandbox_balance=20, name="Alpha")
    # An updated row moves within the table; the order of a list must not follow it.
    books.execute(f"UPDATE organizations SET is_suspended = true WHERE id = {first}")
    with transaction() as connection:
        live = organizations.find_all(connection, sandbox=False)
        sandbox = organizations.find_all(connection, sandbox=True)
        assert live == [organizations.get(connection, one, sandbox=False) for one in (first, second)]
    assert [(one.id, one.balance) for one in sandbox] == [(first, 10), (second, 20)]


def test_an_organization_that_does_not_exist_is_not_found() -> None:
    with transaction() as connection, pytest.raises(NotFound, match="There is no organization 9"):
        organizations.get(connection, 9, sandbox=False)


@pytest.mark.parametrize("flag", ["is_disabled", "is_suspended"])
def test_a_flag_is_set_and_taken_back_without_touching_the_other_or_another_organization(flag: str) -> None:
    mine, other = books.make_organization(), books.make_organization()
    opposite = {"is_disabled": "is_suspended", "is_suspended": "is_disabled"}[flag]
    books.execute(f"UPDATE organizations SET {opposite} = true WHERE id = {mine}")
    for value in (True, False):
        with transaction() as connection:
            organizations.change(connection, mine, {flag: value})
            seen = organizations.get(connection, mine, sandbox=False)
            assert (getattr(seen, flag), getattr(seen, opposite)) == (value, True)
            assert not getattr(organizations.get(connection, other, sandbox=False), flag)


def test_flags_of_an_organization_that_does_not_exist_are_not_found() -> None:
    with transaction() as connection, pytest.raises(NotFound):
        organizations.change(connection, 9, {"is_disabled": True})


both_modes = pytest.mark.parametrize("sandbox", [False, True], ids=["live", "sandbox"])


@both_modes
def test_a_refill_adds_to_the_balance_of_its_mode_and_of_no_other(*, sandbox: bool) -> None:
    mine, other = books.make_organization(5, sandbox_balance=5), books.make_organization(5, sandbox_balance=5)
    with transaction() as connection:
        assert refill(connection, mine, 10, sandbox=sandbox) == 15
    assert books.balance_of(mine, sandbox=sandbox) == 15
    assert books.balance_of(mine, sandbox=not sandbox) == 5
    assert books.balance_of(other, sandbox=sandbox) == 5
    assert books.breaches() == []


@both_modes
def test_the_last_refill_is_the_balance_right_after_it_and_stays_when_points_are_issued(*, sandbox: bool) -> None:
    organization_id = books.make_organization(5, sandbox_balance=5)
    with transaction() as connection:
        refill(connection, organization_id, 10, sandbox=sandbox)
    books.issue_now(organization_id, ["ann@example.com"], 3, sandbox=sandbox)
    with transaction() as connection:
        seen = organizations.get(connection, organization_id, sandbox=sandbox)
        assert (seen.balance, seen.last_refill) == (12, 15)
        assert organizations.get(connection, organization_id, sandbox=not sandbox).last_refill == 5


@both_modes
def test_each_refill_is_kept_with_the_balance_it_left(*, sandbox: bool) -> None:
    organization_id = books.make_organization()
    with transaction() as connection:
        for amount in (10, 20):
            refill(connection, organization_id, amount, sandbox=sandbox)
        rows = connection.execute(text("SELECT organization_id, sandbox, amount, balance FROM refills ORDER BY id"))
        assert rows.all() == [(organization_id, sandbox, 10, 10), (organization_id, sandbox, 20, 30)]


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


def test_a_refill_of_an_organization_that_does_not_exist_is_not_found() -> None:
    with pytest.raises(NotFound, match="There is no organization 9"), transaction() as connection:
        refill(connection, 9, 1)


def test_a_refill_that_is_rolled_back_leaves_nothing() -> None:
    organization_id = books.make_organization(5)
    with transaction() as connection:
        refill(connection, organization_id, 10)
        connection.rollback()
    assert books.balance_of(organization_id) == 5
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
