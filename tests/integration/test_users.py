"""Users: how they are registered and found, and what they claim."""

from functools import partial

import pytest

from app import users
from app.errors import InvalidAddress, NotFound, Refused
from app.ledger.claim import claim, register, users_with_held
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


def _claim(user_ids: list[int]) -> int:
    with transaction() as connection:
        return claim(connection, user_ids, [1]).transactions


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
        assert register(connection, [users.new_user(ANN, "Another", "Name")]).user_ids == []
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
        books.and_told(
            "INSERT INTO users (email, email_key, first_name, last_name)"
            f" SELECT a, a, 'First', 'Last' FROM unnest(ARRAY['{ANN}', '{BOB}']) AS a"
        )
    )
    claimed = [_claim([1, 2])]
    assert books.breaches() == []
    claimed += [_claim([1, 2]) for _ in range(3)]
    assert claimed == [3, 3, 2, 0]
    assert (books.balance_of_user(ANN), books.balance_of_user(BOB)) == (40, 40)
    assert books.breaches() == []


def test_a_registration_credits_all_that_is_held_in_many_claims(monkeypatch: pytest.MonkeyPatch) -> None:
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
        books.and_told(
            "INSERT INTO users (email, email_key, first_name, last_name)"
            f" SELECT a, a, 'First', 'Last' FROM unnest(ARRAY['{BOB}', '{ANN}']) AS a"
        )
    )
    with races.started() as start:
        with transaction() as connection:
            assert claim(connection, [1, 2], [1]) == (2, 20)
            second = start(lambda: _claim([2, 1]))
            races.until_waiting()
        assert second.result() == 0
    assert (books.balance_of_user(ANN), books.balance_of_user(BOB)) == (10, 10)
    assert books.breaches() == []
