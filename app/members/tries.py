"""Passwords and codes that were tried: ten wrong ones lock the account."""

from collections.abc import Sequence
from typing import NamedTuple

from sqlalchemy import Connection, text

from app.actions import log as actions
from app.members.place import Place

# This many wrong passwords and codes within `LOCK_MINUTES` lock the account for `LOCK_MINUTES`.
WRONG_PASSWORDS_MAX = 10
LOCK_MINUTES = 15


class Try(NamedTuple):
    """An attempt to sign in; `locks` if the account is locked unless the password is right."""

    member_id: int
    password_hash: str
    locks: bool


def count_try(connection: Connection, email_key: str, *, member_id: int | None = None) -> list[Try]:
    """Count an attempt to sign in as a failure of each member with the address, or of the given one alone.

    Commit this before checking the password, so that simultaneous attempts are all counted. `begin` resets the count of
    those whose password was right. A member without a password, or whose account is locked, is left out.
    """
    parameters = {"email_key": email_key, "id": member_id, "max": WRONG_PASSWORDS_MAX, "minutes": LOCK_MINUTES}
    lock_person(connection, email_key)
    return [Try._make(row) for row in connection.execute(_COUNT_TRY, parameters)]


def take_back(connection: Connection, right: Sequence[Try]) -> None:
    """Count a try no longer: the password was right, and a code is awaited, which is counted then."""
    for each in sorted(right):  # In the order in which they were locked.
        connection.execute(_TAKE_BACK, each._asdict())


_TAKE_BACK = text("""
    UPDATE members SET wrong_passwords = wrong_passwords - 1, locked_until = NULL
    WHERE id = :member_id AND password_hash = :password_hash AND wrong_passwords > 0
""")


def lock_person(connection: Connection, email_key: str) -> None:
    """Lock the members of a person."""
    connection.execute(_LOCK_PERSON, {"email_key": email_key})


# In one order, so that two sign-ins of a person do not wait for each other.
_LOCK_PERSON = text("""
    SELECT FROM members WHERE email_key = :email_key AND removed_at IS NULL ORDER BY id FOR NO KEY UPDATE
""")
_COUNT_TRY = text(
    """
    UPDATE members SET
        wrong_passwords = CASE WHEN is_new THEN 1 ELSE wrong_passwords + 1 END,
        wrong_since = CASE WHEN is_new THEN now ELSE wrong_since END,
        locked_until = CASE WHEN NOT is_new AND wrong_passwords + 1 >= :max THEN now + lock END
    FROM (SELECT clock_timestamp() AS now, make_interval(mins => :minutes) AS lock) clock
    WHERE email_key = :email_key AND removed_at IS NULL AND password_hash IS NOT NULL
      AND id = coalesce(CAST(:id AS bigint), id) AND (locked_until IS NULL OR locked_until <= now)
    RETURNING id, password_hash, locked_until IS NOT NULL
""".replace("is_new", "(wrong_since IS NULL OR wrong_since <= now - lock OR locked_until IS NOT NULL)")
)


def note_wrong(
    connection: Connection, wrong: Sequence[Try], place: Place, *, action: str = actions.WRONG_PASSWORD
) -> None:
    """Record that a password or a code was wrong for these members. For none of them the same work is done."""
    # Without a wait for the disk, which would tell by the time of the answer whether there is such a member.
    connection.execute(text("SET LOCAL synchronous_commit = off"))
    place_length_max = actions.DETAIL_LENGTH_MAX - len(_LOCKED)
    parameters: dict[str, object] = {"action": action, "locked": _LOCKED}
    parameters |= {"place": str(place)[:place_length_max], "ids": [each.member_id for each in wrong]}
    parameters["locks"] = [each.member_id for each in wrong if each.locks]
    connection.execute(_NOTE_WRONG, parameters)


_LOCKED = f"; the account is locked for {LOCK_MINUTES} minutes"
_NOTE_WRONG = text("""
    INSERT INTO actions (action, organization_id, subject_id, detail)
    SELECT :action, organization_id, id, :place || CASE WHEN id = ANY(CAST(:locks AS bigint[])) THEN :locked ELSE '' END
    FROM members WHERE id = ANY(CAST(:ids AS bigint[]))
""")


def forget(connection: Connection, member_id: int, password_hash: str) -> int | None:
    """Forget the tries of a member whose password was right; return the organization's id.

    None: the password was changed, or the member removed, since the check.
    """
    parameters = {"member_id": member_id, "password_hash": password_hash}
    organization_id: int | None = connection.execute(_FORGET, parameters).scalar()
    return organization_id


_FORGET = text("""
    UPDATE members SET wrong_passwords = 0, wrong_since = NULL, locked_until = NULL
    WHERE id = :member_id AND password_hash = :password_hash RETURNING organization_id
""")
