"""Members: the people of an organization who may use the console, and their roles."""

from collections.abc import Collection
from dataclasses import dataclass
from datetime import datetime

from sqlalchemy import Connection, text

from app.actions import log as actions
from app.errors import NotFound, Refused
from app.postgres.database import row_to, row_with_id
from app.scope import Author
from app.values.addresses import parse

# Each role includes the ones before it.
ROLES = VIEWER, SENDER, APPROVER, ADMIN = "viewer", "sender", "approver", "admin"


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
        """Tell whether the member has this role or a higher role."""
        return ROLES.index(self.role) >= ROLES.index(role)


@dataclass(frozen=True, kw_only=True, slots=True)
class ListedMember(Member):
    """A member as a list shows it."""

    has_password: bool
    is_locked: bool
    created_at: datetime


def find_all(connection: Connection, organization_id: int | None) -> list[ListedMember]:
    """Return the members of an organization (None: of all), oldest first, without removed ones."""
    rows = connection.execute(_FIND_ALL, {"organization_id": organization_id})
    return [row_to(ListedMember, row) for row in rows]


_FIND_ALL = text("""
    SELECT id, organization_id, email, first_name, last_name, role, password_hash IS NOT NULL AS has_password,
           coalesce(locked_until > clock_timestamp(), false) AS is_locked, created_at
    FROM members
    WHERE organization_id = coalesce(CAST(:organization_id AS bigint), organization_id) AND removed_at IS NULL
    ORDER BY id
""")


def names_of(connection: Connection, member_ids: Collection[int]) -> dict[int, str]:
    """Return the names of members by their ids, also of removed ones."""
    rows = connection.execute(
        text("SELECT id, first_name, last_name FROM members WHERE id = ANY(:ids)"), {"ids": list(member_ids)}
    )
    return {member_id: f"{first} {last}".strip() for member_id, first, last in rows}


def get_id(connection: Connection, email: str) -> int:
    """Return the id of the member with an e-mail address.

    Raises:
        InvalidAddress: the text is no e-mail address.
        NotFound: there is no such member, or the member was removed.
    """
    member_id: int | None = connection.execute(
        text("SELECT id FROM members WHERE email_key = :email_key AND removed_at IS NULL"),
        {"email_key": parse(email).key},
    ).scalar()
    if member_id is None:
        raise NotFound("member", email)
    return member_id


def get_listed(connection: Connection, member_id: int, *, organization_id: int) -> ListedMember:
    """Return a member of an organization.

    Raises:
        NotFound: the organization has no such member.
    """
    members = [member for member in find_all(connection, organization_id) if member.id == member_id]
    if not members:
        raise NotFound("member", member_id)
    return members[0]


def lock(connection: Connection, member_id: int, *, organization_id: int | None = None) -> Member:
    """Return a member, and lock the row until the transaction ends, so that changes of a member are made in turn.

    Raises:
        NotFound: there is no such member (in the given organization), or the member was removed.
    """
    parameters = {"id": member_id, "organization_id": organization_id}
    return row_to(Member, row_with_id(connection, _LOCK, parameters, "member"))


# NO KEY: a plain FOR UPDATE would block inserts that refer to the member, of actions and sessions.
_LOCK = text("""
    SELECT id, organization_id, email, first_name, last_name, role FROM members
    WHERE id = :id AND removed_at IS NULL
      AND organization_id = coalesce(CAST(:organization_id AS bigint), organization_id) FOR NO KEY UPDATE
""")


def change_role(connection: Connection, member: Member, role: str, *, by: int | None) -> None:
    """Give a locked member another role. It takes effect with the member's next request.

    Raises:
        Refused: the organization would have no admin left.
    """
    assert role in ROLES, "the caller has checked the role"
    if role == member.role:
        return
    if role != ADMIN:
        _keep_an_admin(connection, member)
    connection.execute(text("UPDATE members SET role = :role WHERE id = :id"), {"id": member.id, "role": role})
    record(connection, actions.ROLE_CHANGED, member, by=by, detail=f"{member.role} to {role}")


def remove(connection: Connection, member: Member, *, by: int | None) -> None:
    """Remove a locked member, with the password, the link and the sessions. The recorded actions stay.

    Raises:
        Refused: a member removes the last admin. An operator (`by` None) may.
    """
    if by is not None:
        _keep_an_admin(connection, member)
    connection.execute(_REMOVE, {"id": member.id})
    connection.execute(END_SESSIONS, {"id": member.id})
    record(connection, actions.MEMBER_REMOVED, member, by=by)


_REMOVE = text("""
    UPDATE members SET removed_at = clock_timestamp(), password_hash = NULL, link_hash = NULL, link_expires_at = NULL
    WHERE id = :id
""")


def end_sessions(connection: Connection, member: Member, *, by: int | None) -> int:
    """End the sessions of a locked member; return how many were ended."""
    ended = connection.execute(END_SESSIONS, {"id": member.id}).rowcount
    if ended:
        record(connection, actions.SESSIONS_ENDED, member, by=by)
    return ended


END_SESSIONS = text("""
    UPDATE member_sessions SET revoked_at = clock_timestamp()
    WHERE member_id = :id AND revoked_at IS NULL AND expires_at > clock_timestamp()
""")


def choose_zone(connection: Connection, member: Member, zone: str) -> None:
    """Keep the time zone of a locked member."""
    if connection.execute(
        text("UPDATE members SET time_zone = :zone WHERE id = :id AND time_zone <> :zone"),
        {"id": member.id, "zone": zone},
    ).rowcount:
        record(connection, actions.ZONE_CHOSEN, member, by=member.id, detail=zone)


def _keep_an_admin(connection: Connection, member: Member) -> None:
    """Refuse if the member is the only admin. Locking the admins' rows keeps two of them from leaving at once."""
    admins = connection.execute(_LOCK_ADMINS, {"organization_id": member.organization_id}).scalars().all()
    if set(admins) == {member.id}:
        raise Refused("This is the only admin: make another member an admin first.")


_LOCK_ADMINS = text("""
    SELECT id FROM members WHERE organization_id = :organization_id AND role = 'admin' AND removed_at IS NULL
    ORDER BY id FOR NO KEY UPDATE
""")


def record(connection: Connection, action: str, member: Member, *, by: int | None, detail: str | None = None) -> None:
    """Record an action on a member, by a member or (None) the one for whom the transaction was opened."""
    actions.record(
        connection,
        action,
        organization_id=member.organization_id,
        subject_id=member.id,
        detail=detail,
        by=None if by is None else Author(member_id=by),
    )
