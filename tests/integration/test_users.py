"""The rows of users: registered once under an address, and found under every spelling of it."""

from functools import partial

import pytest

from app import users
from app.errors import InvalidAddress, NotFound, Refused
from app.postgres.database import transaction
from tests.integration import books, races

pytestmark = pytest.mark.usefixtures("database")

ANN, BOB = "ann@example.com", "bob@example.com"


def _insert(*emails: str, last_name: str = "Last") -> list[int]:
    with transaction() as connection:
        return users.insert_new(connection, [users.new_user(email, "First", last_name) for email in emails])


def test_a_registered_user_has_the_address_as_given_the_names_trimmed_and_no_points() -> None:
    with transaction() as connection:
        [user_id] = users.insert_new(connection, [users.new_user(" Ann@Example.com ", " Ann ", " Lee\t")])
        seen = users.get(connection, ANN)
    assert (seen.id, seen.email, seen.first_name, seen.last_name) == (user_id, "Ann@Example.com", "Ann", "Lee")
    assert seen.balance == 0


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


@pytest.mark.parametrize("other", ["a.nn@example.com", "ann+1@example.com", "ann@example.org"])
def test_dots_and_pluses_make_another_user(other: str) -> None:
    _insert(ANN)
    assert len(_insert(other)) == 1
    with transaction() as connection:
        assert users.get(connection, other).email == other
        assert users.get(connection, ANN).email == ANN


def test_who_is_registered_already_stays_as_they_are() -> None:
    [ann] = _insert(ANN, last_name="Before")
    [bob] = _insert(ANN.upper(), BOB, last_name="After")
    with transaction() as connection:
        assert (users.get(connection, ANN).id, users.get(connection, ANN).last_name) == (ann, "Before")
        assert users.get(connection, BOB).id == bob


def test_an_address_twice_in_one_import_is_one_user() -> None:
    assert len(_insert(ANN, BOB, ANN.upper())) == 2


def test_users_go_in_in_the_order_of_the_normalised_address_byte_by_byte() -> None:
    # Who meets on the same addresses, in whatever spelling, waits one way round only.
    emails = ["b@example.com", "A@example.com", "a_b@example.com", "ab@example.com", "C@example.com", "a-z@example.com"]
    with transaction() as connection:
        users.insert_new(connection, [users.new_user(email, "First", "Last") for email in emails])
        stored = connection.exec_driver_sql("SELECT email_key FROM users ORDER BY id").scalars().all()
    assert stored == sorted(email.lower() for email in emails)


def test_of_two_registrations_of_one_address_at_once_the_second_waits_and_registers_nobody() -> None:
    with races.started() as start:
        with transaction() as connection:
            assert len(users.insert_new(connection, [users.new_user(ANN, "First", "Last")])) == 1
            second = start(partial(_insert, BOB, ANN))
            races.until_waiting()
        assert len(second.result(races.PATIENCE_S)) == 1
    with transaction() as connection:
        assert users.get(connection, BOB).id != users.get(connection, ANN).id


def test_a_user_that_does_not_exist_is_not_found() -> None:
    books.make_users(ANN)
    with transaction() as connection, pytest.raises(NotFound, match="There is no user registered as bob@"):
        users.get(connection, f" {BOB} ")


def test_what_is_no_address_is_neither_registered_nor_found() -> None:
    with pytest.raises(InvalidAddress):
        users.new_user("ann@", "First", "Last")
    with transaction() as connection, pytest.raises(InvalidAddress):
        users.get(connection, "ann@")


@pytest.mark.parametrize(
    ("field", "name"),
    [
        *(("first_name", blank) for blank in ("", "  ")),
        *((field, name) for field in ("first_name", "last_name") for name in ("x" * 256, "a NUL \0", "\udcff")),
    ],
)
def test_a_name_that_is_none_is_refused_by_its_field(field: str, name: str) -> None:
    names = {"first_name": "First", "last_name": "Last"} | {field: name}
    with pytest.raises(Refused, match=f"^{field} "):
        users.new_user(ANN, **names)


def test_a_person_with_one_name_has_an_empty_last_name() -> None:
    assert users.new_user(ANN, "Ann", "  ").last_name == ""
