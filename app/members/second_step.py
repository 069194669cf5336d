"""The second step of signing in: a session whose password was right awaits a code, for ten minutes."""

from collections.abc import Sequence
from typing import NamedTuple

from sqlalchemy import Connection, text

from app.members import second_factor, sessions, tries
from app.members.place import Place
from app.members.tries import Try
from app.values.key_hashes import hash_token, new_token


class Waiting(NamedTuple):
    """A session that awaits a code: of whom, and of which factor."""

    session_id: int
    opens_others: bool
    member_id: int
    email_key: str
    password_hash: str
    factor_id: int


class Begun(NamedTuple):
    """A session that was begun; while it `awaits_code` it opens nothing."""

    token: str
    awaits_code: bool


def sign_in(connection: Connection, right: Sequence[Try], place: Place, *, last_id: int | None) -> Begun | None:
    """Begin a session for a person whose password was right, as the member of `last_id` if it is one of them.

    None: that password was changed, or the member removed, since the check.
    """
    tries.take_back(connection, right)
    chosen = min(right, key=lambda each: (each.member_id != last_id, each.member_id))
    begun = begin(connection, chosen.member_id, chosen.password_hash, place, opens_others=True)
    if begun is not None and not begun.awaits_code:
        for each in sorted(right):
            tries.forget(connection, each.member_id, each.password_hash)
    return begun


def begin(
    connection: Connection, member_id: int, password_hash: str, place: Place, *, opens_others: bool = False
) -> Begun | None:
    """Begin a session for a locked member whose password was right; it awaits a code if there is a second factor.

    Args:
        opens_others: the password was counted as a try for all members of the person. If it was just chosen, nothing
            tells whether it is right elsewhere, so only the member's own factor counts.
    """
    of = {"id": member_id, "password_hash": password_hash, "opens_others": opens_others}
    if connection.execute(_FACTOR_OF, of).scalar() is None:
        token = sessions.begin(connection, member_id, password_hash, place, opens_others=opens_others)
        return None if token is None else Begun(token, awaits_code=False)
    token, token_hash = new_token()
    connection.execute(_AWAIT, of | {"hash": token_hash})
    return Begun(token, awaits_code=True)


_FACTOR = """
    coalesce(m.second_factor_id, (SELECT min(other.second_factor_id) FROM members other
                                  WHERE {} AND other.email_key = m.email_key AND other.removed_at IS NULL
                                    AND other.password_hash = m.password_hash))
"""
_FACTOR_OF = text(f"""
    SELECT {_FACTOR.format(":opens_others")} FROM members m WHERE m.id = :id AND m.password_hash = :password_hash
""")
_AWAIT = text("""
    INSERT INTO member_sessions (member_id, hash, expires_at, opens_others, awaits_code)
    VALUES (:id, :hash, clock_timestamp() + interval '10 min', :opens_others, true)
""")


def find(connection: Connection, token: str) -> Waiting | None:
    """Return the session of a token that awaits a code; None: there is none, or no longer."""
    row = connection.execute(_FIND, {"hash": hash_token(token)}).one_or_none()
    return None if row is None else Waiting(*row)


_FIND = text(f"""
    SELECT * FROM (SELECT s.id, s.opens_others, m.id AS member_id, m.email_key, m.password_hash,
                          {_FACTOR.format("s.opens_others")} AS factor_id
                   FROM member_sessions s JOIN members m ON m.id = s.member_id
                   WHERE s.hash = :hash AND s.awaits_code AND s.revoked_at IS NULL AND s.expires_at > clock_timestamp()
                     AND m.removed_at IS NULL AND m.password_hash IS NOT NULL) waiting
    WHERE factor_id IS NOT NULL
""")


def enter(connection: Connection, waiting: Waiting, code: str, place: Place) -> str | None:
    """Begin the session of who gives a good code, in place of the one that awaited it; None: it is not good.

    Those of the person's members whose password was right as well have the same factor from now on.
    """
    tries.lock_person(connection, waiting.email_key)
    if not second_factor.use_code(connection, waiting.factor_id, code):
        return None
    if not connection.execute(_END, {"id": waiting.session_id}).rowcount:
        return None
    if waiting.opens_others:
        connection.execute(_SHARE, waiting._asdict())
    of = (waiting.member_id, waiting.password_hash, place)
    return sessions.begin(connection, *of, opens_others=waiting.opens_others)


_END = text("UPDATE member_sessions SET revoked_at = clock_timestamp() WHERE id = :id AND revoked_at IS NULL")
_SHARE = text("""
    UPDATE members SET second_factor_id = :factor_id
    WHERE email_key = :email_key AND password_hash = :password_hash AND second_factor_id IS NULL
      AND removed_at IS NULL
""")
