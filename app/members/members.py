"""Members: the people of an organization who may use the console, and their roles."""

from collections.abc import Collection
from dataclasses import dataclass
from datetime import datetime
from typing import Annotated, NamedTuple

from sqlalchemy import Connection, text

from app.actions import log as actions
from app.errors import NotFound, Refused
from app.noun import Noun
from app.noun_fields import Id, says, says_one_of
from app.postgres.database import row_to, row_with_id
from app.scope import Author
from app.values.addresses import parse
from app.values.ids import require_id

# Each role includes the ones before it.
ROLES = VIEWER, SENDER, APPROVER, ADMIN = "viewer", "sender", "approver", "admin"


def full_name(first_name: str, last_name: str) -> str:
    """Return a person's name; the last name may be empty."""
    return f"{first_name} {last_name}".strip()


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
        return full_name(self.first_name, self.last_name)

    def may(self, role: str) -> bool:
        """Tell whether the member has this role or a higher role."""
        return ROLES.index(self.role) >= ROLES.index(role)


MemberId = Annotated[Id, says("The id of the member.", 2)]
MemberEmail = Annotated[str, says("The address, trimmed.", "mary@example.com")]
MemberRole = Annotated[str, says_one_of(ROLES, "What the member may do.", "admin")]
GivenName = Annotated[str, says("The given name.", "Mary")]
FamilyName = Annotated[str, says("The family name; empty if there is none.", "Jackson")]


class ListedMember(NamedTuple):
    """A person who may use the console of an organization."""

    id: MemberId
    organization_id: Annotated[Id, says("The organization.", 1)]
    email: MemberEmail
    first_name: GivenName
    last_name: FamilyName
    role: MemberRole
    has_password: Annotated[bool, says("False: the link was not used yet.", True)]
    is_locked: Annotated[bool, says("True: ten wrong passwords; it ends after 15 minutes, or by a new link.", False)]
    created_at: Annotated[
        datetime, says("When it was made. ISO 8601 in UTC, six decimals.", "2026-01-31T09:30:00.471006Z")
    ]
    last_signed_in_at: Annotated[
        datetime | None, says("When the member last signed in; null: never.", "2026-01-31T10:00:00.000000Z")
    ]
    has_second_factor: Annotated[bool, says("True: signing in also asks for a code of an app.", False)]

    @property
    def name(self) -> str:
        return full_name(self.first_name, self.last_name)


members = Noun(
    ListedMember,
    "member",
    "members",
    schema="Member",
    computed={
        "has_password": lambda of: f"{of}password_hash IS NOT NULL",
        "has_second_factor": lambda of: f"{of}second_factor_id IS NOT NULL",
        "is_locked": lambda of: f"coalesce({of}locked_until > clock_timestamp(), false)",
    },
)


def find_all(connection: Connection, organization_id: int | None) -> list[ListedMember]:
    """Return the members of an organization (None: of all), oldest first, without removed ones."""
    return [ListedMember(*row) for row in connection.execute(_FIND_ALL, {"organization_id": organization_id})]


_FIND_ALL = text(f"""
    SELECT {members.columns} FROM members
    WHERE organization_id = coalesce(CAST(:organization_id AS bigint), organization_id) AND removed_at IS NULL
    ORDER BY id
""")


def names_of(connection: Connection, member_ids: Collection[int]) -> dict[int, str]:
    """Return the names of members by their ids, also of removed ones."""
    rows = connection.execute(
        text("SELECT id, first_name, last_name FROM members WHERE id = ANY(:ids)"), {"ids": list(member_ids)}
    )
    return {member_id: full_name(first, last) for member_id, first, last in rows}


def all_names(connection: Connection, organization_id: int) -> dict[int, str]:
    """Return the names of an organization's members by their ids; removed ones come last, and are called so."""
    rows = connection.execute(_ALL_NAMES, {"organization_id": organization_id})
    return {
        member_id: full_name(first, last) + (" (removed)" if is_removed else "")
        for member_id, first, last, is_removed in rows
    }


_ALL_NAMES = text("""
    SELECT id, first_name, last_name, removed_at IS NOT NULL AS is_removed FROM members
    WHERE organization_id = :organization_id ORDER BY is_removed, id
""")


def get_id(connection: Connection, email: str, organization_id: int | None) -> int:
    """Return the id of the member with an e-mail address, of an organization or (None) of the only one.

    Raises:
        InvalidAddress: the text is no e-mail address.
        NotFound: there is no such member, or the member was removed.
        Refused: several organizations have such a member.
    """
    found = connection.execute(_BY_EMAIL, {"email_key": parse(email).key, "organization_id": organization_id}).all()
    if not found:
        raise NotFound("member", email)
    if len(found) > 1:
        ids = ", ".join(str(row.organization_id) for row in found)
        raise Refused(f"This is a member of organizations {ids}: choose one by --organization.")
    return int(found[0].id)


_BY_EMAIL = text("""
    SELECT id, organization_id FROM members
    WHERE email_key = :email_key AND removed_at IS NULL
      AND organization_id = coalesce(CAST(:organization_id AS bigint), organization_id)
    ORDER BY organization_id
""")


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
    require_id("organization", organization_id or 0)
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
    drop_second_factor(connection, member.id)
    connection.execute(_REMOVE, {"id": member.id})
    connection.execute(END_SESSIONS, {"id": member.id})
    record(connection, actions.MEMBER_REMOVED, member, by=by)


def remove_once(connection: Connection, member_id: int, *, organization_id: int) -> None:
    """Remove a member for the platform; of one that was removed before, nothing changes.

    Raises:
        NotFound: the organization never had such a member.
    """
    require_id("member", member_id)
    require_id("organization", organization_id)
    was_removed = text("SELECT removed_at IS NOT NULL FROM members WHERE id = :id AND organization_id = :of")
    if not connection.execute(was_removed, {"id": member_id, "of": organization_id}).scalar():
        remove(connection, lock(connection, member_id, organization_id=organization_id), by=None)


_REMOVE = text("""
    UPDATE members SET removed_at = clock_timestamp(), password_hash = NULL, link_hash = NULL, link_expires_at = NULL
    WHERE id = :id
""")


def drop_second_factor(connection: Connection, member_id: int, *, everywhere: bool = False) -> bool:
    """Leave a locked member, or all who share it, without the second factor; tell whether there was one."""
    factor_id = connection.execute(_FACTOR, {"id": member_id}).scalar_one()
    if factor_id is None:
        return False
    parameters = {"id": member_id, "factor_id": factor_id, "everywhere": everywhere}
    connection.execute(_DROP_FACTOR, parameters)
    connection.execute(_FORGET_FACTOR, parameters)
    return True


_FACTOR = text("SELECT second_factor_id FROM members WHERE id = :id")
_DROP_FACTOR = text("""
    UPDATE members SET second_factor_id = NULL WHERE second_factor_id = :factor_id AND (:everywhere OR id = :id)
""")
_FORGET_FACTOR = text("""
    DELETE FROM second_factors
    WHERE id = :factor_id AND NOT EXISTS (SELECT FROM members WHERE second_factor_id = :factor_id)
""")


def end_sessions(connection: Connection, member: Member, *, by: int | None) -> int:
    """End the sessions of a locked member, and the ways here from elsewhere; return how many sessions were ended."""
    connection.execute(_CLOSE_WAYS, {"id": member.id})
    ended = connection.execute(END_SESSIONS, {"id": member.id}).rowcount
    if ended:
        record(connection, actions.SESSIONS_ENDED, member, by=by)
    return ended


_CLOSE_WAYS = text("""
    UPDATE member_sessions SET opens_others = false
    WHERE opens_others AND member_id IN (SELECT other.id FROM members m JOIN members other USING (email_key)
                                         WHERE m.id = :id)
""")
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
