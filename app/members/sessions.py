"""Signing in: ten wrong passwords lock the account; a session ends after 12 hours, or earlier if it is ended.

Here too: the forms that a session has used up, so that each has its effect once, and the secret of the cookie.
"""

import secrets
from collections.abc import Sequence
from datetime import datetime, timedelta
from typing import NamedTuple

from sqlalchemy import Connection, text

from app.actions import log as actions
from app.errors import NotFound
from app.members.members import Member
from app.scope import Author
from app.values.ids import require_id
from app.values.key_hashes import hash_token, new_token

SESSION_HOURS = 12

# This many wrong passwords within `LOCK_MINUTES` lock the account for `LOCK_MINUTES`.
WRONG_PASSWORDS_MAX = 10
LOCK_MINUTES = 15


class SignedIn(NamedTuple):
    """A valid session: its member with the time zone, the member's organization, and whether it opens others too.

    `sandbox_ahead` is how far the clock of the organization's sandbox is ahead.
    """

    session_id: int
    organization_name: str
    sandbox_ahead: timedelta
    time_zone: str
    has_others: bool
    member: Member


class ListedSession(NamedTuple):
    """A valid session as the account page lists it."""

    id: int
    created_at: datetime
    expires_at: datetime
    browser: str | None
    address: str | None


class Place(NamedTuple):
    """Where a member signs in: the browser in words, and the IP address. Both are what the caller says."""

    browser: str | None = None
    address: str | None = None

    def __str__(self) -> str:
        return ", ".join(part for part in (self.browser, self.address) if part)


_UNKNOWN = Place()


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
    connection.execute(_LOCK_PERSON, parameters)
    return [Try._make(row) for row in connection.execute(_COUNT_TRY, parameters)]


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


def note_wrong_passwords(connection: Connection, wrong: Sequence[Try], place: Place) -> None:
    """Record that a password was wrong for these members. For none of them the same work is done."""
    # Without a wait for the disk, which would tell by the time of the answer whether there is such a member.
    connection.execute(text("SET LOCAL synchronous_commit = off"))
    place_length_max = actions.DETAIL_LENGTH_MAX - len(_LOCKED)
    parameters: dict[str, object] = {"action": actions.WRONG_PASSWORD, "locked": _LOCKED}
    parameters |= {"place": str(place)[:place_length_max], "ids": [each.member_id for each in wrong]}
    parameters["locks"] = [each.member_id for each in wrong if each.locks]
    connection.execute(_NOTE_WRONG, parameters)


_LOCKED = f"; the account is locked for {LOCK_MINUTES} minutes"
_NOTE_WRONG = text("""
    INSERT INTO actions (action, organization_id, subject_id, detail)
    SELECT :action, organization_id, id, :place || CASE WHEN id = ANY(CAST(:locks AS bigint[])) THEN :locked ELSE '' END
    FROM members WHERE id = ANY(CAST(:ids AS bigint[]))
""")


def sign_in(connection: Connection, right: Sequence[Try], place: Place, *, last_id: int | None) -> str | None:
    """Begin a session for a person whose password was right, as the member of `last_id` if it is one of them.

    None: that password was changed, or the member removed, since the check.
    """
    for each in sorted(right):  # In the order in which they were locked.
        connection.execute(_FORGET_TRIES, each._asdict())
    chosen = min(right, key=lambda each: (each.member_id != last_id, each.member_id))
    return begin(connection, chosen.member_id, chosen.password_hash, place, opens_others=True)


def begin(
    connection: Connection, member_id: int, password_hash: str, place: Place = _UNKNOWN, *, opens_others: bool = False
) -> str | None:
    """Begin a session for a member whose password was right; return its token. Only its hash is stored.

    None: the password was changed, or the member removed, since the check.
    """
    token, token_hash = new_token()
    member = {"member_id": member_id, "password_hash": password_hash}
    organization_id = connection.execute(_FORGET_TRIES, member).scalar()
    if organization_id is None:
        return None
    session = {"hash": token_hash, "hours": SESSION_HOURS, "opens_others": opens_others, **place._asdict()}
    connection.execute(_BEGIN, session | member)
    connection.execute(_FORGET_ENDED)
    actions.record(
        connection,
        actions.SIGNED_IN,
        organization_id=organization_id,
        subject_id=member_id,
        detail=str(place) or None,
        by=Author(member_id=member_id),
    )
    return token


_FORGET_TRIES = text("""
    UPDATE members SET wrong_passwords = 0, wrong_since = NULL, locked_until = NULL
    WHERE id = :member_id AND password_hash = :password_hash RETURNING organization_id
""")
_BEGIN = text("""
    INSERT INTO member_sessions (member_id, hash, expires_at, browser, address, opens_others)
    VALUES (:member_id, :hash, clock_timestamp() + make_interval(hours => :hours), :browser, :address, :opens_others)
""")
# Each new session deletes a few expired ones, so no scheduled task is needed for that.
_FORGET_ENDED = text("""
    DELETE FROM member_sessions
    WHERE id = ANY(ARRAY(SELECT id FROM member_sessions WHERE expires_at < (SELECT clock_timestamp())
                         ORDER BY expires_at LIMIT 20 FOR UPDATE SKIP LOCKED))
""")


def find(connection: Connection, token: str) -> SignedIn | None:
    """Return the session of a token; None: it is unknown, expired or ended."""
    row = connection.execute(_FIND, {"hash": hash_token(token)}).one_or_none()
    if row is None:
        return None
    session_id, organization_name, sandbox_ahead, time_zone, has_others, *member = row
    of = Member(**dict(zip(Member.__slots__, member, strict=True)))
    return SignedIn(session_id, organization_name, sandbox_ahead, time_zone, has_others, of)


# The other members with the address and the password of the member `m` of a session `s` that opens them.
_OTHERS = """
    FROM members other JOIN organizations of_other ON of_other.id = other.organization_id
    WHERE s.opens_others AND other.email_key = m.email_key AND other.password_hash = m.password_hash
      AND other.id <> m.id AND other.removed_at IS NULL AND coalesce(other.locked_until <= clock_timestamp(), true)
"""
_FIND = text(f"""
    SELECT s.id, o.name, o.sandbox_ahead, m.time_zone, EXISTS(SELECT {_OTHERS}), m.id, m.organization_id, m.email,
           m.first_name, m.last_name, m.role
    FROM member_sessions s JOIN members m ON m.id = s.member_id JOIN organizations o ON o.id = m.organization_id
    WHERE s.hash = :hash AND s.revoked_at IS NULL AND s.expires_at > clock_timestamp() AND m.removed_at IS NULL
""")


class OtherOrganization(NamedTuple):
    """An organization that a person may go on to without another sign-in, and who they are there."""

    name: str
    member_id: int
    password_hash: str


def find_others(connection: Connection, session_id: int) -> list[OtherOrganization]:
    """Return the other organizations that a session opens, by their names."""
    return [OtherOrganization(*row) for row in connection.execute(_FIND_OTHERS, {"id": session_id})]


_FIND_OTHERS = text(f"""
    SELECT others.* FROM member_sessions s JOIN members m ON m.id = s.member_id,
           LATERAL (SELECT of_other.name, other.id, other.password_hash {_OTHERS}) others
    WHERE s.id = :id ORDER BY others.name, others.id
""")


def go_on(connection: Connection, session_id: int, place: Place, *, own_id: int, other_id: int) -> str:
    """End a session of a member and begin one of the same person in another organization; return its token.

    Raises:
        NotFound: the session does not open it.
    """
    for other in find_others(connection, session_id):
        if other.member_id == other_id:
            token = begin(connection, other_id, other.password_hash, place, opens_others=True)
            if token is not None:
                end(connection, session_id, member_id=own_id)
                return token
    raise NotFound("member", other_id)


def find_all(connection: Connection, member_id: int) -> list[ListedSession]:
    """Return the valid sessions of a member, newest first."""
    return [ListedSession(*row) for row in connection.execute(_FIND_ALL, {"member_id": member_id})]


_FIND_ALL = text("""
    SELECT id, created_at, expires_at, browser, address FROM member_sessions
    WHERE member_id = :member_id AND revoked_at IS NULL AND expires_at > clock_timestamp() ORDER BY id DESC
""")


def end(connection: Connection, session_id: int, *, member_id: int) -> None:
    """End a session of this member; an ended session stays as it is.

    Raises:
        NotFound: the member has no session with this id.
    """
    require_id("session", session_id)
    if not connection.execute(_END, {"id": session_id, "member_id": member_id}).rowcount:
        raise NotFound("session", session_id)


_END = text("""
    UPDATE member_sessions SET revoked_at = coalesce(revoked_at, clock_timestamp())
    WHERE id = :id AND member_id = :member_id
""")


# The ids of used forms are kept for longer than a session, and so than any page whose form could be sent again.
_FORMS_KEPT_HOURS = 24


def use_form(connection: Connection, form_id: str, *, member_id: int) -> bool:
    """Use up the id of a form of this member; return False if it was used up before.

    If another transaction has just used it up, this waits for its end.
    """
    connection.execute(_FORGET_FORMS, {"hours": _FORMS_KEPT_HOURS})
    return bool(
        connection.execute(
            text("INSERT INTO used_forms (member_id, form_id) VALUES (:member_id, :form_id) ON CONFLICT DO NOTHING"),
            {"form_id": form_id, "member_id": member_id},
        ).rowcount
    )


# Each form deletes a few old ones, so no scheduled task is needed for that.
_FORGET_FORMS = text("""
    DELETE FROM used_forms
    WHERE ctid = ANY(ARRAY(SELECT ctid FROM used_forms
                           WHERE used_at < (SELECT clock_timestamp() - make_interval(hours => :hours))
                           ORDER BY used_at LIMIT 20 FOR UPDATE SKIP LOCKED))
""")


def secret_of_all(connection: Connection, name: str) -> bytes:
    """Return the 32 random bytes of this name that all processes share; the first that asks has them stored."""
    parameters = {"name": name, "secret": secrets.token_bytes(32)}
    connection.execute(
        text("INSERT INTO service_secrets (name, secret) VALUES (:name, :secret) ON CONFLICT (name) DO NOTHING"),
        parameters,
    )
    secret: bytes = connection.execute(
        text("SELECT secret FROM service_secrets WHERE name = :name"), parameters
    ).scalar_one()
    return secret
