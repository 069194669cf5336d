"""Links: a member chooses a password by one, which is good once and for 24 hours."""

from collections.abc import Mapping
from typing import Any

from sqlalchemy import Connection, text

from app.actions import log as actions
from app.fields.field import Table
from app.fields.kinds import EMAIL, FIRST_NAME, LAST_NAME, OneOf
from app.members.members import END_SESSIONS, ROLES, Member, create, record
from app.postgres.database import row_to
from app.settings import Settings
from app.values.keys import hash_token, new_token

LINK_HOURS = 24


def add(
    connection: Connection,
    organization_id: int,
    email: str,
    first_name: str,
    last_name: str,
    *,
    role: str,
    by: int | None,
) -> tuple[int, str]:
    """Make a member; return the id, and the token of the first link. Only its hash is stored.

    Raises:
        InvalidAddress, NotFound, Refused: as `create`.
    """
    member = create(connection, organization_id, email, first_name, last_name, role=role, by=by)
    return member.id, _store_link(connection, member)


def link_to(url: str, token: str) -> str:
    """Return the link by which a member chooses a password; `url` is where the service is reached."""
    return f"{url.rstrip('/')}/console/link/{token}"


def make_link(connection: Connection, member: Member, *, by: int | None) -> str:
    """Return the token of a new link for a locked member. An earlier link ends; the password stays valid."""
    record(connection, actions.LINK_MADE, member, by=by)
    return _store_link(connection, member)


def _store_link(connection: Connection, member: Member) -> str:
    token, link_hash = new_token()
    connection.execute(_MAKE_LINK, {"id": member.id, "link_hash": link_hash, "link_hours": LINK_HOURS})
    return token


_MAKE_LINK = text("""
    UPDATE members SET link_hash = :link_hash,
                       link_expires_at = clock_timestamp() + make_interval(hours => :link_hours)
    WHERE id = :id
""")


def find_by_link(connection: Connection, token: str) -> Member | None:
    """Return the member that a link belongs to, and lock the row. None: the link is not or no longer valid."""
    row = connection.execute(_FIND_BY_LINK, {"link_hash": hash_token(token)}).one_or_none()
    return None if row is None else row_to(Member, row)


_FIND_BY_LINK = text("""
    SELECT id, organization_id, email, first_name, last_name, role FROM members
    WHERE link_hash = :link_hash AND link_expires_at > clock_timestamp() AND removed_at IS NULL FOR NO KEY UPDATE
""")


def choose_password(connection: Connection, member: Member, password_hash: str) -> None:
    """Give a locked member a password. This uses up the link, unlocks the account, and ends all sessions."""
    connection.execute(_CHOOSE_PASSWORD, {"id": member.id, "password_hash": password_hash})
    connection.execute(END_SESSIONS, {"id": member.id})
    record(connection, actions.PASSWORD_CHOSEN, member, by=member.id)


_CHOOSE_PASSWORD = text("""
    UPDATE members SET password_hash = :password_hash, link_hash = NULL, link_expires_at = NULL,
                       wrong_passwords = 0, wrong_since = NULL, locked_until = NULL
    WHERE id = :id
""")


ROLE = OneOf(
    "role",
    f"What the member may do: {', '.join(ROLES)}; each includes the ones before it.",
    "admin",
    words=ROLES,
    is_required=True,
)
NEW_MEMBER = Table("NewMember", "A person who may use the console.", EMAIL, FIRST_NAME, LAST_NAME, ROLE)


def read_new_member(fields: Mapping[str, Any], limits: Settings) -> dict[str, Any]:
    """Return the values of a new member, as `app.members.links.add` takes them.

    Raises:
        InvalidRequest: with every fault, each under its field.
    """
    values = NEW_MEMBER.read(fields, limits)
    return values | {"email": values["email"].text}
