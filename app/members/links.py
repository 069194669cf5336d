"""A member is made with a link, by which a password is chosen; a link is good once and for 24 hours.

Its token is stored as a hash; encrypted only until its mail is sent, if the service sends mail.
"""

from collections.abc import Mapping
from typing import Any

from sqlalchemy import Connection, text
from sqlalchemy.exc import IntegrityError

from app.actions import log as actions
from app.errors import Refused
from app.fields.field import Table
from app.fields.kinds import EMAIL, FIRST_NAME, LAST_NAME, OneOf
from app.members import mails
from app.members.members import END_SESSIONS, ROLES, Member, record
from app.organizations import get as get_organization
from app.postgres.database import row_to
from app.scope import Scope
from app.settings import Settings
from app.values.addresses import parse
from app.values.key_hashes import hash_token, new_token
from app.values.texts import checked_name

LINK_HOURS = 24


class MemberConflict(Refused):
    """A member of the organization has the address."""

    field = "email"
    says = "A member of the organization has this e-mail address already."


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

    `by` is the member who does it, None for an operator or the platform.

    Raises:
        InvalidAddress: `email` is not an e-mail address.
        NotFound: there is no such organization.
        Refused: a name is not acceptable, or a member of the organization has this address already.
    """
    assert role in ROLES, "the caller has checked the role"
    address = parse(email)
    first_name = checked_name("The first name", first_name)
    last_name = checked_name("The last name", last_name, may_be_blank=True)
    get_organization(connection, Scope(organization_id, sandbox=False))
    values = {"organization_id": organization_id, "email": address.text, "email_key": address.key, "role": role}
    try:
        with connection.begin_nested():
            row = connection.execute(_CREATE, values | {"first_name": first_name, "last_name": last_name}).one()
    except IntegrityError:
        raise MemberConflict from None
    member = row_to(Member, row)
    record(connection, actions.MEMBER_ADDED, member, by=by, detail=role)
    return member.id, _store_link(connection, member)


_CREATE = text("""
    INSERT INTO members (organization_id, email, email_key, first_name, last_name, role)
    VALUES (:organization_id, :email, :email_key, :first_name, :last_name, :role)
    RETURNING id, organization_id, email, first_name, last_name, role
""")


class NoPublicUrl(Refused):
    """The service does not know where people reach its console, so it can make no link."""

    code = "no_public_url"
    field = "link"
    says = (
        "A link begins with the setting POINTS_PUBLIC_URL, which is not set: whoever runs the service sets it to where"
        " people reach the console."
    )


def link_to(token: str, *, url: str | None) -> str:
    """Return the link by which a member chooses a password; `url` is where people reach the console.

    Raises:
        NoPublicUrl: nobody has said that.
    """
    if url is None:
        raise NoPublicUrl
    return f"{url.rstrip('/')}/console/link/{token}"


def make_link(connection: Connection, member: Member, *, by: int | None) -> str:
    """Return the token of a new link for a locked member. An earlier link ends; the password stays valid."""
    record(connection, actions.LINK_MADE, member, by=by)
    return _store_link(connection, member)


def _store_link(connection: Connection, member: Member) -> str:
    token, link_hash = new_token()
    connection.execute(_MAKE_LINK, {"id": member.id, "link_hash": link_hash, "link_hours": LINK_HOURS})
    mails.put_link(connection, member, token)
    return token


_MAKE_LINK = text("""
    UPDATE members SET link_hash = :link_hash,
                       link_expires_at = clock_timestamp() + make_interval(hours => :link_hours)
    WHERE id = :id
""")


def password_like(connection: Connection, member: Member) -> str | None:
    """Return a stored password of the same person, here or elsewhere, whose salt the next shall have; None: none."""
    like: str | None = connection.execute(_PASSWORD_LIKE, {"email_key": parse(member.email).key}).scalar()
    return like


_PASSWORD_LIKE = text("""
    SELECT password_hash FROM members WHERE email_key = :email_key AND password_hash IS NOT NULL ORDER BY id LIMIT 1
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
