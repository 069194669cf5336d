"""The rows of API keys: known whole at one moment only, good for one organization and mode, revoked at once."""

from datetime import datetime
from functools import partial

import pytest
from sqlalchemy import text

from app import api_keys, organizations
from app.api_keys import Caller
from app.errors import InvalidKey, NotFound, Refused
from app.postgres.database import transaction
from app.values.keys import hash_key, new_key
from tests.integration import books, races

pytestmark = pytest.mark.usefixtures("database")

both_modes = pytest.mark.parametrize("sandbox", [False, True], ids=["live", "sandbox"])


def _create(organization_id: int, *, sandbox: bool = False) -> tuple[int, str]:
    with transaction() as connection:
        return api_keys.create(connection, organization_id, sandbox=sandbox)


def _get_caller(key: str) -> Caller:
    with transaction() as connection:
        return api_keys.get_caller(connection, hash_key(key))


@both_modes
def test_a_key_leads_to_its_organization_as_its_mode_sees_it(*, sandbox: bool) -> None:
    organization_id = books.make_organization(100, sandbox_balance=50)
    books.make_organization(7, sandbox_balance=7)
    books.issue_now(organization_id, ["ann@example.com"], 1)
    books.issue_now(organization_id, ["ann@example.com"], 2, sandbox=True)
    books.execute(f"UPDATE organizations SET is_suspended = true WHERE id = {organization_id}")
    api_key_id, key = _create(organization_id, sandbox=sandbox)
    with transaction() as connection:
        organization = organizations.get(connection, organization_id, sandbox=sandbox)
    assert _get_caller(key) == Caller(api_key_id=api_key_id, sandbox=sandbox, organization=organization)


@both_modes
def test_the_prefix_of_a_key_tells_its_mode(*, sandbox: bool) -> None:
    _, key = _create(books.make_organization(), sandbox=sandbox)
    assert key.startswith("pts_dev_" if sandbox else "pts_live_")


def test_what_is_stored_is_not_enough_to_call() -> None:
    _, key = _create(books.make_organization())
    with transaction() as connection:
        [stored] = connection.execute(text("SELECT api_keys::text FROM api_keys")).scalars()
    secret = key.removeprefix("pts_live_")
    assert secret[:4] in stored
    assert secret[4:8] not in stored
    assert secret.encode().hex()[8:16] not in stored


def test_an_organization_may_have_several_keys_and_they_differ() -> None:
    organization_id = books.make_organization()
    keys = [_create(organization_id, sandbox=sandbox) for sandbox in (False, False, True)]
    assert len({key for _, key in keys}) == 3
    assert [_get_caller(key).api_key_id for _, key in keys] == [api_key_id for api_key_id, _ in keys]


def test_keys_are_listed_oldest_first_for_their_organization_alone_and_revoked_ones_too() -> None:
    mine, other = books.make_organization(), books.make_organization()
    keys = [_create(mine), _create(mine, sandbox=True)]
    _create(other)
    with transaction() as connection:
        api_keys.revoke(connection, keys[0][0])
        listed = api_keys.find_all(connection, mine)
    assert [(one.id, one.organization_id, one.sandbox) for one in listed] == [
        (keys[0][0], mine, False),
        (keys[1][0], mine, True),
    ]
    assert [key.startswith(one.start) for one, (_, key) in zip(listed, keys, strict=True)] == [True, True]
    assert [one.revoked_at is None for one in listed] == [False, True]


def test_a_key_has_the_name_that_people_gave_it_or_none() -> None:
    organization_id = books.make_organization()
    names = [None, "  The shop’s till, 2nd floor ", "店", "x" * 100]
    with transaction() as connection:
        made = [api_keys.create(connection, organization_id, sandbox=False, name=name)[0] for name in names]
        api_keys.revoke(connection, made[2])
        shown = [None, "The shop’s till, 2nd floor", "店", "x" * 100]
        assert [one.name for one in api_keys.find_all(connection, organization_id)] == shown
        assert api_keys.names_of(connection, made[1:3]) == {made[1]: shown[1], made[2]: shown[2]}


@pytest.mark.parametrize(
    ("name", "sentence"),
    [
        (" ", "The name must have 1 to 100 characters, but has 0."),
        ("x" * 101, "The name must have 1 to 100 characters, but has 101."),
        ("two\nlines", "The name must have visible characters and blanks only, but has U+000A."),
        ("right\u202eleft", "The name must have visible characters and blanks only, but has U+202E."),
        ("no\0thing", "The name must not contain a NUL character."),
        ("half \ud800", "The name is not in UTF-8."),
    ],
)
def test_a_name_that_cannot_be_read_is_refused_and_makes_no_key(name: str, sentence: str) -> None:
    organization_id = books.make_organization()
    with transaction() as connection, pytest.raises(Refused) as refused:
        api_keys.create(connection, organization_id, sandbox=False, name=name)
    assert refused.value.sentence == sentence
    with transaction() as connection:
        assert api_keys.find_all(connection, organization_id) == []


def test_unknown_and_revoked_keys_are_refused_in_the_same_words() -> None:
    organization_id = books.make_organization()
    api_key_id, revoked = _create(organization_id)
    with transaction() as connection:
        api_keys.revoke(connection, api_key_id)
    sentences = set()
    for key in (new_key(sandbox=False).text, revoked):
        with pytest.raises(InvalidKey) as refused:
            _get_caller(key)
        sentences.add(refused.value.sentence)
    assert len(sentences) == 1


def test_a_live_key_is_no_development_key_of_the_same_characters() -> None:
    _, key = _create(books.make_organization())
    with pytest.raises(InvalidKey):
        _get_caller(key.replace("pts_live_", "pts_dev_"))


def test_revoking_stops_one_key_at_once_and_no_other() -> None:
    organization_id = books.make_organization()
    (revoked_id, revoked), (_, kept) = _create(organization_id), _create(organization_id)
    with transaction() as connection:
        api_keys.revoke(connection, revoked_id)
    with pytest.raises(InvalidKey):
        _get_caller(revoked)
    assert _get_caller(kept).organization.id == organization_id


def test_revoking_again_keeps_the_time_of_the_first() -> None:
    organization_id = books.make_organization()
    api_key_id, _ = _create(organization_id)
    times = []
    for _ in range(2):
        with transaction() as connection:
            api_keys.revoke(connection, api_key_id)
            times += [one.revoked_at for one in api_keys.find_all(connection, organization_id)]
    assert times[0] is not None
    assert times[0] == times[1]


def test_when_a_key_was_last_used_is_noted_once_a_minute() -> None:
    organization_id = books.make_organization()
    (_, key), _unused = _create(organization_id), _create(organization_id)

    def last_used_at() -> list[datetime | None]:
        with transaction() as connection:
            return [one.last_used_at for one in api_keys.find_all(connection, organization_id)]

    assert last_used_at() == [None, None]
    _get_caller(key)
    first, unused = last_used_at()
    assert first is not None
    assert unused is None
    _get_caller(key)
    assert last_used_at() == [first, None]
    books.execute("UPDATE api_keys SET last_used_at = last_used_at - interval '61 s'")
    _get_caller(key)
    again, _ = last_used_at()
    assert again is not None
    assert again > first


def test_callers_that_come_together_do_not_wait_for_each_other_to_note_the_use() -> None:
    api_key_id, key = _create(books.make_organization())
    with races.started() as start, transaction() as connection:
        assert api_keys.get_caller(connection, hash_key(key)).api_key_id == api_key_id
        assert start(partial(_get_caller, key)).result(timeout=30).api_key_id == api_key_id


def test_a_key_that_does_not_exist_cannot_be_revoked() -> None:
    with transaction() as connection, pytest.raises(NotFound, match="There is no key 9"):
        api_keys.revoke(connection, 9)


def test_an_organization_that_does_not_exist_gets_no_key_and_the_rest_of_the_transaction_stands() -> None:
    with transaction() as connection:
        organization_id = organizations.create(connection, "Acme", sandbox_start_balance=0)
        with pytest.raises(NotFound, match="There is no organization 9"):
            api_keys.create(connection, 9, sandbox=False)
        api_keys.create(connection, organization_id, sandbox=False)
    with transaction() as connection:
        assert len(api_keys.find_all(connection, organization_id)) == 1
