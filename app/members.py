"""Members: the people of an organization who may use the console, their roles and their links."""

from dataclasses import dataclass
from datetime import datetime

from sqlalchemy import Connection, text
from sqlalchemy.exc import IntegrityError

from app import member_actions
from app.errors import NotFound, Refused
from app.organizations import find as find_organization
from app.values import names
from app.values.addresses import parse
from app.values.tokens import hash_token, new_token

# Each may do what those before it may.
ROLES = VIEWER, SENDER, ADMIN = "viewer", "sender", "admin"

LINK_HOURS = 24


@dataclass(frozen=True, kw_only=True, slots=True)
class Member:
    """A person of an organization."""

    id: int
    organization_id: int
    email: str
    first_name: str
    last_name: str
    role: str

    @property
    def name(self) -> str:
        return f"{self.first_name} {self.last_name}".strip()

    def may(self, role: str) -> bool:
        """Tell whether the member may do what needs this role."""
        return ROLES.index(self.role) >= ROLES.index(role)


@dataclass(frozen=True, kw_only=True, slots=True)
class ListedMember(Member):
    """A member as a list shows it."""

    has_password: bool
    is_locked: bool
    created_at: datetime


def create(
    connection: Connection,
    organization_id: int,
    email: str,
    first_name: str,
    last_name: str,
    *,
    role: str,
    by: int | None,
) -> tuple[int, str]:
    """Make a member; return the id, and the token of a link for the first password, which is stored as its hash alone.

    `by` is the member who does it, None for somebody who runs the service.

    Raises:
        InvalidAddress: `email` is not an e-mail address.
        NotFound: there is no such organization.
        Refused: a name is not a name, or somebody is a member under this address already.
    """
    assert role in ROLES, "whoever asks has checked the role"
    address = parse(email)
    first_name = names.checked("The first name", first_name)
    last_name = names.checked("The last name", last_name, may_be_blank=True)
    find_organization(connection, organization_id, sandbox=False)
    token, link_hash = new_token()
    values = {
        "organization_id": organization_id,
        "email": address.text,
        "email_key": address.key,
        "first_name": first_name,
        "last_name": last_name,
        "role": role,
        "link_hash": link_hash,
        "link_hours": LINK_HOURS,
    }
    try:
        with connection.begin_nested():
            member_id = connection.execute(_CREATE, values).scalar_one()
    except IntegrityError:
        raise Refused("Somebody is a member under this e-mail address already.") from None
    member_actions.record(
        connection,
        member_actions.MEMBER_ADDED,
        organization_id=organization_id,
        member_id=by,
        subject_id=member_id,
        detail=role,
    )
    return member_id, token


_CREATE = text("""
    INSERT INTO members (organization_id, email, email_key, first_name, last_name, role, link_hash, link_expires_at)
    VALUES (:organization_id, :email, :email_key, :first_name, :last_name, :role, :link_hash,
            clock_timestamp() + make_interval(hours => :link_hours))
    RETURNING id
""")


def find_all(connection: Connection, organization_id: int) -> list[ListedMember]:
    """Return the members of an organization, oldest first, without those who were removed."""
    rows = connection.execute(_FIND_ALL, {"organization_id": organization_id})
    return [ListedMember(**row._mapping) for row in rows]  # noqa: SLF001


_FIND_ALL = text("""
    SELECT id, organization_id, email, first_name, last_name, role, password_hash IS NOT NULL AS has_password,
           coalesce(locked_until > clock_timestamp(), false) AS is_locked, created_at
    FROM members WHERE organization_id = :organization_id AND removed_at IS NULL ORDER BY id
""")


def find_listed(connection: Connection, member_id: int, *, organization_id: int) -> ListedMember:
    """Return a member of an organization.

    Raises:
        NotFound: the organization has no such member.
    """
    found = [member for member in find_all(connection, organization_id) if member.id == member_id]
    if not found:
        raise NotFound("member", member_id)
    return found[0]


def lock(connection: Connection, member_id: int, *, organization_id: int | None = None) -> Member:
    """Return a member whose row is locked until the transaction ends, so that changes of one member follow each other.

    Raises:
        NotFound: there is no such member (of the organization, where one is given), or it was removed.
    """
    row = connection.execute(_LOCK, {"id": member_id, "organization_id": organization_id}).one_or_none()
    if row is None:
        raise NotFound("member", member_id)
    return Member(**row._mapping)  # noqa: SLF001


# NO KEY: a plain FOR UPDATE would hold up each action and session of the member that is written meanwhile.
_LOCK = text("""
    SELECT id, organization_id, email, first_name, last_name, role FROM members
    WHERE id = :id AND removed_at IS NULL
      AND organization_id = coalesce(CAST(:organization_id AS bigint), organization_id) FOR NO KEY UPDATE
""")


def make_link(connection: Connection, member: Member, *, by: int | None) -> str:
    """Return the token of a new link for a locked member; an earlier link is good no longer, the password still is."""
    token, link_hash = new_token()
    connection.execute(_MAKE_LINK, {"id": member.id, "link_hash": link_hash, "link_hours": LINK_HOURS})
    _record(connection, member_actions.LINK_MADE, member, by=by)
    return token


_MAKE_LINK = text("""
    UPDATE members SET link_hash = :link_hash,
                       link_expires_at = clock_timestamp() + make_interval(hours => :link_hours)
    WHERE id = :id
""")


def find_by_link(connection: Connection, token: str) -> Member | None:
    """Return the member whom a link is for, as long as it is good; its row is locked. None: it is good no longer."""
    row = connection.execute(_FIND_BY_LINK, {"link_hash": hash_token(token)}).one_or_none()
    return None if row is None else Member(**row._mapping)  # noqa: SLF001


_FIND_BY_LINK = text("""
    SELECT id, organization_id, email, first_name, last_name, role FROM members
    WHERE link_hash = :link_hash AND link_expires_at > clock_timestamp() AND removed_at IS NULL FOR NO KEY UPDATE
""")


def choose_password(connection: Connection, member: Member, password_hash: str) -> None:
    """Give a locked member a password. Its link is used up, its lock ends, and so do its sessions."""
    connection.execute(_CHOOSE_PASSWORD, {"id": member.id, "password_hash": password_hash})
    connection.execute(_END_SESSIONS, {"id": member.id, "except": None})
    _record(connection, member_actions.PASSWORD_CHOSEN, member, by=member.id)


_CHOOSE_PASSWORD = text("""
    UPDATE members SET password_hash = :password_hash, link_hash = NULL, link_expires_at = NULL,
                       wrong_passwords = 0, wrong_since = NULL, locked_until = NULL
    WHERE id = :id
""")


def change_role(connection: Connection, member: Member, role: str, *, by: int | None) -> None:
    """Give a locked member another role. It counts from the member's next page on.

    Raises:
        Refused: nobody would be left who may manage the members.
    """
    assert role in ROLES, "whoever asks has checked the role"
    if role == member.role:
        return
    if role != ADMIN:
        _keep_an_admin(connection, member)
    connection.execute(_CHANGE_ROLE, {"id": member.id, "role": role})
    _record(connection, member_actions.ROLE_CHANGED, member, by=by, detail=f"{member.role} to {role}")


_CHANGE_ROLE = text("UPDATE members SET role = :role WHERE id = :id")


def remove(connection: Connection, member: Member, *, by: int | None) -> None:
    """Remove a locked member: the password, the link and the sessions are good no longer. What it did stays.

    Raises:
        Refused: a member would remove the last who may manage the members. Who runs the service may.
    """
    if by is not None:
        _keep_an_admin(connection, member)
    connection.execute(_REMOVE, {"id": member.id})
    connection.execute(_END_SESSIONS, {"id": member.id, "except": None})
    _record(connection, member_actions.MEMBER_REMOVED, member, by=by)


_REMOVE = text("""
    UPDATE members SET removed_at = clock_timestamp(), password_hash = NULL, link_hash = NULL, link_expires_at = NULL
    WHERE id = :id
""")


def end_sessions(connection: Connection, member: Member, *, by: int | None, keep: int | None = None) -> int:
    """End the sessions of a member, except the one to `keep`; return how many there were."""
    ended = connection.execute(_END_SESSIONS, {"id": member.id, "except": keep}).rowcount
    if ended:
        _record(connection, member_actions.SESSIONS_ENDED, member, by=by)
    return ended


_END_SESSIONS = text("""
    UPDATE member_sessions SET revoked_at = clock_timestamp()
    WHERE member_id = :id AND revoked_at IS NULL AND expires_at > clock_timestamp()
      AND id IS DISTINCT FROM CAST(:except AS bigint)
""")


def _keep_an_admin(connection: Connection, member: Member) -> None:
    """Refuse if no other admin is left. Two that would leave at once wait for each other at the admins' rows."""
    admins = connection.execute(_LOCK_ADMINS, {"organization_id": member.organization_id}).scalars().all()
    if set(admins) == {member.id}:
        raise Refused("This is the only admin: make another member one first.")


_LOCK_ADMINS = text("""
    SELECT id FROM members WHERE organization_id = :organization_id AND role = 'admin' AND removed_at IS NULL
    ORDER BY id FOR NO KEY UPDATE
""")


def _record(connection: Connection, action: str, member: Member, *, by: int | None, detail: str | None = None) -> None:
    member_actions.record(
        connection,
        action,
        organization_id=member.organization_id,
        member_id=by,
        subject_id=member.id,
        detail=detail,
    )
