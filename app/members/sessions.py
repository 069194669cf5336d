"""Sessions of members: one ends after 12 hours, after an hour without a request, or earlier if it is ended.

Here too: the forms that a session has used up, so that each has its effect once, and the secret of the cookie.
"""

import secrets
from datetime import datetime, timedelta
from typing import NamedTuple

from sqlalchemy import Connection, text

from app.actions import log as actions
from app.errors import NotFound
from app.members import tries
from app.members.members import Member
from app.members.place import Place
from app.scope import Author
from app.values.ids import require_id
from app.values.key_hashes import hash_token, new_token

SESSION_HOURS = 12
IDLE_MINUTES = 60


class SignedIn(NamedTuple):
    """A valid session: its member with the time zone, the member's organization, and whether it opens others too.

    `must_enrol`: the organization requires a second factor, which the member does not have.
    `sandbox_ahead` is how far the clock of the organization's sandbox is ahead.
    """

    session_id: int
    organization_name: str
    sandbox_ahead: timedelta
    time_zone: str
    has_others: bool
    must_enrol: bool
    member: Member


class ListedSession(NamedTuple):
    """A valid session as the account page lists it."""

    id: int
    created_at: datetime
    seen_at: datetime
    expires_at: datetime
    browser: str | None
    address: str | None


_UNKNOWN = Place()


def begin(
    connection: Connection, member_id: int, password_hash: str, place: Place = _UNKNOWN, *, opens_others: bool = False
) -> str | None:
    """Begin a session for a member whose password was right; return its token. Only its hash is stored.

    None: the password was changed, or the member removed, since the check.
    """
    token, token_hash = new_token()
    member = {"member_id": member_id, "password_hash": password_hash}
    organization_id = tries.forget(connection, member_id, password_hash)
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


_BEGIN = text("""
    WITH noted AS (UPDATE members SET last_signed_in_at = clock_timestamp() WHERE id = :member_id)
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
    last_sight_is_old, session_id, organization_name, sandbox_ahead, time_zone, has_others, must_enrol, *member = row
    if last_sight_is_old:
        connection.execute(_NOTE_SIGHT, {"id": session_id})
    of = Member(**dict(zip(Member.__slots__, member, strict=True)))
    return SignedIn(session_id, organization_name, sandbox_ahead, time_zone, has_others, must_enrol, of)


# The other members with the address and the password of the member `m` of a session `s` that opens them.
_OTHERS = """
    FROM members other JOIN organizations of_other ON of_other.id = other.organization_id
    WHERE s.opens_others AND other.email_key = m.email_key AND other.password_hash = m.password_hash
      AND other.id <> m.id AND other.removed_at IS NULL AND coalesce(other.locked_until <= clock_timestamp(), true)
      AND coalesce(other.second_factor_id = m.second_factor_id, other.second_factor_id IS NULL)
"""
_IS_VALID = f"""
    NOT s.awaits_code AND s.revoked_at IS NULL AND s.expires_at > clock_timestamp()
    AND s.seen_at > clock_timestamp() - interval '{IDLE_MINUTES} min'
"""
_FIND = text(f"""
    SELECT s.seen_at < clock_timestamp() - interval '1 min', s.id, o.name, o.sandbox_ahead, m.time_zone,
           EXISTS(SELECT {_OTHERS}), o.requires_second_factor AND m.second_factor_id IS NULL,
           m.id, m.organization_id, m.email, m.first_name, m.last_name, m.role
    FROM member_sessions s JOIN members m ON m.id = s.member_id JOIN organizations o ON o.id = m.organization_id
    WHERE s.hash = :hash AND {_IS_VALID} AND m.removed_at IS NULL
""")
# Once a minute at most, since a write costs more than a read. Of several requests at once, one notes it and none waits.
_NOTE_SIGHT = text("""
    UPDATE member_sessions SET seen_at = clock_timestamp()
    WHERE id = (SELECT id FROM member_sessions WHERE id = :id FOR NO KEY UPDATE SKIP LOCKED)
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


_FIND_ALL = text(f"""
    SELECT id, created_at, seen_at, expires_at, browser, address FROM member_sessions s
    WHERE member_id = :member_id AND {_IS_VALID} ORDER BY id DESC
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
