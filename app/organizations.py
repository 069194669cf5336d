"""Organizations: their flags, and their balance in each mode."""

from collections.abc import Mapping
from datetime import datetime
from typing import Annotated, Any, NamedTuple

from sqlalchemy import Connection, text
from sqlalchemy.exc import IntegrityError

from app.actions import log as actions
from app.errors import MayNotIssue, OrganizationConflict, OrganizationDisabled, OrganizationSuspended
from app.events import event_types, log
from app.noun import Noun
from app.noun_fields import Id, Points, says, says_one_of
from app.postgres.database import row_to, row_with_id
from app.postgres.locks import lock_organization
from app.scope import Scope
from app.values.texts import checked_name

# What people call the settings of an organization.
SETTING_LABELS = {
    "approval_above": "Approval limit",
    "approval_of": "Whose sends await an approval",
    "held_days": "Days that points are held",
    "low_balance": "Low balance",
    "requires_second_factor": "Second factor",
}

_Id = Annotated[Id, says("The id of the organization.", 1)]
_Name = Annotated[str, says("Its name.", "Acme")]
_IsDisabled = Annotated[bool, says("True: it cannot issue until it is enabled.", False)]
_IsSuspended = Annotated[bool, says("True: it cannot issue until it is resumed.", False)]
_Balance = Annotated[Points, says("Its balance; in a transaction, the balance right after that transaction.", 1_000)]
_LastRefill = Annotated[Points, says("The balance right after the last refill.", 1_000)]
_Made = Annotated[datetime, says("When it was made. ISO 8601 in UTC, six decimals.", "2026-01-05T08:00:00.000000Z")]


class OrganizationInMode(NamedTuple):
    """An organization, with the balance of the key's mode."""

    id: _Id
    name: _Name
    is_disabled: _IsDisabled
    is_suspended: _IsSuspended
    balance: _Balance
    last_refill: _LastRefill
    created_at: _Made


# The codes of an organization that may not issue.
MAY_NOT_ISSUE = (OrganizationDisabled.code, OrganizationSuspended.code)

in_mode = Noun(OrganizationInMode, "organization", "organizations", schema="Organization")

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
    external_id: str | None = None,
    held_days: int | None = None,
    low_balance: int | None = None,
) -> tuple[int, bool]:
    """Insert an organization without points; return its id, and whether it is new. Opening balances are refills.

    One with this external id and name that is there already is returned unchanged.

    Args:
        held_days: for how many days points are held; None: without end.
        low_balance: below which live balance an event says so; None: never.

    Raises:
        OrganizationConflict: the external id is that of an organization with another name.
        Refused: the name is blank, too long or not valid text.
    """
    values = {
        "name": checked_name("The name", name),
        "external_id": external_id,
        "sandbox_start_balance": sandbox_start_balance,
        "held_days": held_days,
        "low_balance": low_balance,
    }
    organization_id: int | None = connection.execute(_CREATE, values).scalar_one_or_none()
    if organization_id is None:
        known = connection.execute(_BY_EXTERNAL_ID, values).one()
        if known.name != values["name"]:
            raise OrganizationConflict
        return known.id, False
    write_event(connection, event_types.ORGANIZATION_CREATED, organization_id)
    return organization_id, True


_CREATE = text("""
    INSERT INTO organizations (name, external_id, sandbox_start_balance, held_days, low_balance)
    VALUES (:name, :external_id, :sandbox_start_balance, :held_days, :low_balance)
    ON CONFLICT (external_id) DO NOTHING RETURNING id
""")
_BY_EXTERNAL_ID = text("SELECT id, name FROM organizations WHERE external_id = :external_id")


def get(connection: Connection, scope: Scope) -> OrganizationInMode:
    """Return an organization in the given mode.

    Raises:
        NotFound: there is no such organization.
    """
    parameters = {"id": scope.organization_id, "sandbox": scope.sandbox}
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


def held_of(connection: Connection, scope: Scope) -> Held:
    """Return what is held now, from sums that are kept."""
    count, points = connection.execute(_HELD, {"id": scope.organization_id, "sandbox": scope.sandbox}).one()
    return Held(int(count), int(points))


_HELD = text("""
    SELECT CASE WHEN :sandbox THEN sandbox_held_count ELSE held_count - coalesce(c.count, 0) END,
           CASE WHEN :sandbox THEN sandbox_held_points ELSE held_points - coalesce(c.points, 0) END
    FROM organizations
    CROSS JOIN LATERAL (SELECT sum(count) AS count, sum(points) AS points FROM unfolded_claims
                        WHERE organization_id = organizations.id) c
    WHERE id = :id
""")


class WholeOrganization(NamedTuple):
    """An organization in both modes, with its options."""

    id: _Id
    name: _Name
    is_disabled: _IsDisabled
    is_suspended: _IsSuspended
    balance: _Balance
    last_refill: _LastRefill
    created_at: _Made
    external_id: Annotated[str | None, says("Your own id of the organization; null if there is none.", "shop-12")]
    sandbox_balance: Annotated[Points, says("The sandbox balance.", 1_000_000)]
    sandbox_last_refill: Annotated[Points, says("The sandbox balance right after its last refill.", 1_000_000)]
    held_days: Annotated[int | None, says("For how many days points are held; null: for ever.", 90)]
    low_balance: Annotated[Points | None, says("Below which live balance an event says so; null: never.", None)]
    approval_above: Annotated[
        Points | None, says("Above how many points of one batch it awaits an approval; null: never.", None)
    ]
    approval_of: Annotated[str, says_one_of(APPROVAL_OF, "Whose sends await it: those of members, or all.", "console")]
    requires_second_factor: Annotated[bool, says("True: its members sign in with a second factor.", False)]


whole = Noun(WholeOrganization, "organization", "organizations", schema="PlatformOrganization")


def get_whole(connection: Connection, organization_id: int) -> WholeOrganization:
    """Return an organization in both modes.

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
    SELECT {whole.columns} FROM organizations
    ORDER BY coalesce(balance < low_balance, false) DESC, id LIMIT :at_most
""")
_GET_WHOLE = text(f"SELECT {whole.columns} FROM organizations WHERE id = :id")
_FIND_ALL_WHOLE = text(f"SELECT {whole.columns} FROM organizations ORDER BY id")


def change(connection: Connection, organization_id: int, changes: Mapping[str, Any]) -> WholeOrganization:
    """Change the name, flags or options of an organization, each by its name, and return it.

    This waits for the row lock, so a running drain ends first.

    Raises:
        NotFound: there is no such organization.
        OrganizationConflict: the external id is that of another.
    """
    lock_organization(connection, organization_id)
    before = get_whole(connection, organization_id)
    for name in [name for name in _FLAG_NAMES if changes.get(name, getattr(before, name)) != getattr(before, name)]:
        _set(connection, organization_id, {name: changes[name]})
        write_event(connection, _EVENT_OF_FLAG[name, changes[name]], organization_id)
        actions.record_of_organization(connection, _EVENT_OF_FLAG[name, changes[name]], organization_id)
    rest = {name: value for name, value in changes.items() if name not in _FLAG_NAMES}
    if rest := {name: value for name, value in rest.items() if value != getattr(before, name)}:
        try:
            with connection.begin_nested():
                _set(connection, organization_id, rest | ({"low_balance_told": False} if "low_balance" in rest else {}))
        except IntegrityError:
            raise OrganizationConflict from None
        detail = ", ".join(_in_words(name, getattr(before, name), value) for name, value in rest.items())
        actions.record_of_organization(connection, actions.ORGANIZATION_CHANGED, organization_id, detail)
    return get_whole(connection, organization_id)


def _in_words(name: str, before: object, after: object) -> str:
    """Tell a change for the log of actions; of what the platform calls an organization, only that it changed."""
    if name in ("name", "external_id"):
        return name
    return f"{name}: {' to '.join('none' if value is None else str(value) for value in (before, after))}"


_FLAG_NAMES = ("is_disabled", "is_suspended")
# The action has the same word.
_EVENT_OF_FLAG = {
    ("is_disabled", True): event_types.ORGANIZATION_DISABLED,
    ("is_disabled", False): event_types.ORGANIZATION_ENABLED,
    ("is_suspended", True): event_types.ORGANIZATION_SUSPENDED,
    ("is_suspended", False): event_types.ORGANIZATION_RESUMED,
}


def _set(connection: Connection, organization_id: int, changes: Mapping[str, object]) -> None:
    assignments = ", ".join(f"{name} = :{name}" for name in changes)
    connection.execute(
        text(f"UPDATE organizations SET {assignments} WHERE id = :id"), {"id": organization_id, **changes}
    )


def write_event(connection: Connection, kind: str, organization_id: int, *, sandbox: bool = False, **more: Any) -> None:
    """Write an event whose payload is the organization as it is in this transaction, and `more`.

    Each log that has this type tells it: the organization's, the platform's, or both.
    """
    data = {"organization": in_mode.payload(get(connection, Scope(organization_id, sandbox))), **more}
    if kind in event_types.TYPES:
        log.write(connection, kind, organization_id, sandbox=sandbox, data=data)
    if kind in event_types.PLATFORM_TYPES:
        log.write(connection, kind, event_types.PLATFORM, data=data | {"sandbox": sandbox})


class Refill(NamedTuple):
    """Points put into a balance; below 0, points taken off it."""

    id: Annotated[Id, says("The id of the refill.", 3)]
    sandbox: Annotated[bool, says("True: into the sandbox balance.", False)]
    amount: Annotated[int, says("The points; below 0 in a correction, and in a reset of the sandbox.", 1_000)]
    balance: Annotated[Points, says("The balance right after it.", 2_000)]
    reference: Annotated[str | None, says("Your own name for it; null if it has none.", "invoice-7")]
    created_at: Annotated[
        datetime, says("When it was booked. ISO 8601 in UTC, six decimals.", "2026-01-31T09:30:00.471006Z")
    ]


refills = Noun(Refill, "refill", "refills")
