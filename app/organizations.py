"""Organizations: their flags, and their balance in each mode."""

from collections.abc import Mapping
from dataclasses import asdict, dataclass
from datetime import datetime
from typing import Any, NamedTuple

from sqlalchemy import Connection, text

from app.actions import log as actions
from app.errors import MayNotIssue, OrganizationDisabled, OrganizationSuspended
from app.events import log
from app.postgres.database import row_to, row_with_id
from app.postgres.locks import lock_organization
from app.values.payloads import organization_payload
from app.values.texts import checked_name


@dataclass(frozen=True, kw_only=True, slots=True)
class OrganizationInMode:
    """An organization in one mode: `balance` and `last_refill` are the live or the sandbox ones.

    `last_refill` is the balance right after the last refill, in points.
    """

    id: int
    name: str
    is_disabled: bool
    is_suspended: bool
    balance: int
    last_refill: int
    created_at: datetime

    def payload(self) -> dict[str, Any]:
        """Return what callers see of it."""
        return organization_payload(**asdict(self))


# Whose sends await an approval if they are of more points than `approval_above`: those of members, or of keys too.
APPROVAL_OF = ("console", "all")


def may_not_issue(*, is_disabled: bool, is_suspended: bool) -> MayNotIssue | None:
    """Return why an organization may not issue at all, or None. Disabled wins over suspended."""
    if is_disabled:
        return OrganizationDisabled()
    if is_suspended:
        return OrganizationSuspended()
    return None


def create(
    connection: Connection,
    name: str,
    *,
    sandbox_start_balance: int,
    held_days: int | None = None,
    low_balance: int | None = None,
) -> int:
    """Insert an organization without points and return its id. Opening balances are refills.

    Args:
        held_days: for how many days points are held; None: without end.
        low_balance: below which live balance an event says so; None: never.

    Raises:
        Refused: the name is blank, too long or not valid text.
    """
    values = {
        "name": checked_name("The name", name),
        "sandbox_start_balance": sandbox_start_balance,
        "held_days": held_days,
        "low_balance": low_balance,
    }
    organization_id: int = connection.execute(_CREATE, values).scalar_one()
    log.write_of_organization(connection, log.ORGANIZATION_CREATED, organization_id)
    return organization_id


_CREATE = text("""
    INSERT INTO organizations (name, sandbox_start_balance, held_days, low_balance)
    VALUES (:name, :sandbox_start_balance, :held_days, :low_balance) RETURNING id
""")


def get(connection: Connection, organization_id: int, *, sandbox: bool) -> OrganizationInMode:
    """Return one organization in the given mode.

    Raises:
        NotFound: there is no such organization.
    """
    parameters = {"id": organization_id, "sandbox": sandbox}
    return row_to(OrganizationInMode, row_with_id(connection, _GET, parameters, "organization"))


def find_all(connection: Connection, *, sandbox: bool) -> list[OrganizationInMode]:
    """Return every organization in the given mode, oldest first."""
    return [row_to(OrganizationInMode, row) for row in connection.execute(_FIND_ALL, {"sandbox": sandbox})]


_IN_MODE = """
    SELECT id, name, is_disabled, is_suspended, created_at,
           CASE WHEN CAST(:sandbox AS boolean) THEN sandbox_balance ELSE balance END AS balance,
           CASE WHEN CAST(:sandbox AS boolean) THEN sandbox_last_refill ELSE last_refill END AS last_refill
    FROM organizations
"""
_GET = text(f"{_IN_MODE} WHERE id = :id")
_FIND_ALL = text(f"{_IN_MODE} ORDER BY id")


class Held(NamedTuple):
    """What an organization's transactions hold in one mode: how many they are, and for how many points."""

    transactions: int
    points: int


def held_of(connection: Connection, organization_id: int, *, sandbox: bool) -> Held:
    """Return what is held now, from sums that are kept."""
    count, points = connection.execute(_HELD, {"id": organization_id, "sandbox": sandbox}).one()
    return Held(int(count), int(points))


_HELD = text("""
    SELECT CASE WHEN :sandbox THEN sandbox_held_count ELSE held_count - coalesce(c.count, 0) END,
           CASE WHEN :sandbox THEN sandbox_held_points ELSE held_points - coalesce(c.points, 0) END
    FROM organizations
    CROSS JOIN LATERAL (SELECT sum(count) AS count, sum(points) AS points FROM unfolded_claims
                        WHERE organization_id = organizations.id) c
    WHERE id = :id
""")


@dataclass(frozen=True, kw_only=True, slots=True)
class WholeOrganization:
    """An organization in both modes, with its options. The fields are columns."""

    id: int
    name: str
    is_disabled: bool
    is_suspended: bool
    balance: int
    last_refill: int
    created_at: datetime
    sandbox_balance: int
    sandbox_last_refill: int
    held_days: int | None
    low_balance: int | None
    approval_above: int | None
    approval_of: str


WHOLE = ", ".join(WholeOrganization.__slots__)


def get_whole(connection: Connection, organization_id: int) -> WholeOrganization:
    """Return one organization in both modes.

    Raises:
        NotFound: there is no such organization.
    """
    return row_to(WholeOrganization, row_with_id(connection, _GET_WHOLE, {"id": organization_id}, "organization"))


def find_all_whole(connection: Connection) -> list[WholeOrganization]:
    """Return every organization in both modes, oldest first."""
    return [row_to(WholeOrganization, row) for row in connection.execute(_FIND_ALL_WHOLE)]


def find_lowest(connection: Connection, *, at_most: int) -> list[WholeOrganization]:
    """Return up to so many organizations: those below their `low_balance` first, then the oldest."""
    return [row_to(WholeOrganization, row) for row in connection.execute(_FIND_LOWEST, {"at_most": at_most})]


_FIND_LOWEST = text(f"""
    SELECT {WHOLE} FROM organizations
    ORDER BY coalesce(balance < low_balance, false) DESC, id LIMIT :at_most
""")
_GET_WHOLE = text(f"SELECT {WHOLE} FROM organizations WHERE id = :id")
_FIND_ALL_WHOLE = text(f"SELECT {WHOLE} FROM organizations ORDER BY id")


def change(connection: Connection, organization_id: int, changes: Mapping[str, Any]) -> WholeOrganization:
    """Change the name, flags or options of an organization, each by its name, and return it.

    This waits for the row lock, so a running drain ends first.

    Raises:
        NotFound: there is no such organization.
    """
    lock_organization(connection, organization_id)
    before = get_whole(connection, organization_id)
    for name in [name for name in _FLAG_NAMES if changes.get(name, getattr(before, name)) != getattr(before, name)]:
        _set(connection, organization_id, {name: changes[name]})
        log.write_of_organization(connection, _EVENT_OF_FLAG[name, changes[name]], organization_id)
        actions.record_of_organization(connection, _EVENT_OF_FLAG[name, changes[name]], organization_id)
    if rest := {name: value for name, value in changes.items() if name not in _FLAG_NAMES}:
        _set(connection, organization_id, rest)
        actions.record_of_organization(connection, actions.ORGANIZATION_CHANGED, organization_id, ", ".join(rest))
    return get_whole(connection, organization_id)


_FLAG_NAMES = ("is_disabled", "is_suspended")
# The action has the same word.
_EVENT_OF_FLAG = {
    ("is_disabled", True): log.ORGANIZATION_DISABLED,
    ("is_disabled", False): log.ORGANIZATION_ENABLED,
    ("is_suspended", True): log.ORGANIZATION_SUSPENDED,
    ("is_suspended", False): log.ORGANIZATION_RESUMED,
}


def _set(connection: Connection, organization_id: int, changes: Mapping[str, object]) -> None:
    assignments = ", ".join(f"{name} = :{name}" for name in changes)
    connection.execute(
        text(f"UPDATE organizations SET {assignments} WHERE id = :id"), {"id": organization_id, **changes}
    )


class Refill(NamedTuple):
    """A refill in the books, with the balance right after it. A reset of the sandbox may have taken points away."""

    id: int
    sandbox: bool
    amount: int
    balance: int
    reference: str | None
    created_at: datetime


REFILL = ", ".join(Refill._fields)
