"""The rows of organizations: made, found as a mode sees them, suspended and disabled."""

import pytest

from app import organizations
from app.errors import NotFound, Refused
from app.postgres.database import transaction
from tests.integration import books

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
            organizations.set_flags(connection, mine, **{flag: value})
            seen = organizations.get(connection, mine, sandbox=False)
            assert (getattr(seen, flag), getattr(seen, opposite)) == (value, True)
            assert not getattr(organizations.get(connection, other, sandbox=False), flag)


def test_flags_of_an_organization_that_does_not_exist_are_not_found() -> None:
    with transaction() as connection, pytest.raises(NotFound):
        organizations.set_flags(connection, 9, is_disabled=True)
