"""Refills: points put into an organization's live or sandbox balance, and corrections, which take some off again."""

import re
from collections.abc import Mapping
from typing import Any, NamedTuple

from sqlalchemy import Connection, Row, text

from app import organizations
from app.actions import log as actions
from app.errors import CorrectionTooLarge, RefillConflict, RefillTooLarge, Refused
from app.events import event_types
from app.organizations import Refill, WholeOrganization, refills
from app.postgres.locks import lock_organization
from app.scope import Scope
from app.settings import INT64_MAX

_REFERENCE = re.compile(r"\S{1,128}")


class Booked(NamedTuple):
    """A refill, and whether it was booked just now."""

    refill: Refill
    is_new: bool


def refill(connection: Connection, organization_id: int, amount: int, *, sandbox: bool = False) -> int:
    """Add points to a balance, keep the refill as a row, and return the new balance.

    Raises:
        NotFound: there is no such organization.
        Refused: the amount is 0, or the balance would leave 64 bits.
    """
    return refill_once(connection, organization_id, amount, sandbox=sandbox).refill.balance


def open_organization(
    connection: Connection,
    name: str,
    *,
    balance: int,
    sandbox_balance: int,
    **options: Any,
) -> tuple[WholeOrganization, bool]:
    """Make an organization; return it, and whether it is new. Its opening balances are refills.

    Args:
        options: as `organizations.create` takes them.

    Raises:
        OrganizationConflict: as `organizations.create`.
        Refused: the name is blank, too long or not valid text.
    """
    organization_id, is_new = organizations.create(connection, name, sandbox_start_balance=sandbox_balance, **options)
    if is_new:
        actions.record_of_organization(connection, actions.ORGANIZATION_MADE, organization_id)
        for amount, sandbox in ((balance, False), (sandbox_balance, True)):
            if amount:
                refill(connection, organization_id, amount, sandbox=sandbox)
    return organizations.get_whole(connection, organization_id), is_new


def refill_once(
    connection: Connection,
    organization_id: int,
    amount: int,
    *,
    sandbox: bool = False,
    reference: str | None = None,
) -> Booked:
    """Add points to a balance, unless a refill with this reference is in the books already.

    Args:
        amount: below 0 it corrects a refill.
        reference: a name for the refill, unique in the organization; 1 to 128 visible characters. A correction has one.

    Raises:
        NotFound: there is no such organization.
        RefillConflict: the reference belongs to a different refill.
        CorrectionTooLarge: the balance would fall below 0.
        Refused: the amount is 0, the balance would leave 64 bits, or the reference is missing or not acceptable.
    """
    if reference is not None and not (_REFERENCE.fullmatch(reference) and reference.isprintable()):
        raise Refused("The reference of a refill must be 1 to 128 visible characters.")
    # Of two with the same reference, the second sees what the first has booked.
    locked = _lock(connection, organization_id)
    names = {"id": organization_id, "reference": reference}
    if reference is not None and (known := connection.execute(_BY_REFERENCE, names).one_or_none()) is not None:
        if (known.amount, known.sandbox) != (amount, sandbox):
            raise RefillConflict(reference, known.amount, "sandbox" if known.sandbox else "live")
        return Booked(Refill._make(known), is_new=False)
    balance = locked.sandbox_balance if sandbox else locked.balance
    if amount == 0 or (amount < 0 and reference is None):
        raise Refused(f"A refill of {amount} points is none. One below 0 is a correction, which needs a reference.")
    if balance + amount < 0:
        raise CorrectionTooLarge(f"A refill of {amount} points would take the balance of {balance} below 0.")
    if balance + amount > INT64_MAX:
        raise RefillTooLarge(f"A refill of {amount} points would take the balance of {balance} over {INT64_MAX}.")
    booked = _write(connection, names, balance=balance + amount, amount=amount, sandbox=sandbox)
    actions.record(
        connection,
        actions.REFILLED,
        organization_id=organization_id,
        subject_id=booked.id,
        sandbox=sandbox,
        detail=str(amount),
    )
    low, is_told = locked.low_balance, locked.low_balance_told
    # As a debit does (app/ledger/issue.sql).
    if amount < 0 and not sandbox and balance + amount < (low or 0) and (balance >= low or not is_told):
        organizations.write_event(connection, event_types.BALANCE_LOW, organization_id, low_balance=low)
    return Booked(booked, is_new=True)


def reset_sandbox(connection: Connection, organization_id: int) -> int:
    """Put the sandbox's clock back, and its balance to its start value, which is returned.

    The difference is kept as a refill. If the balance has that value already, not even the last refill changes.

    Raises:
        NotFound: there is no such organization.
    """
    locked = _lock(connection, organization_id)
    start: int = locked.sandbox_start_balance
    balance: int = locked.sandbox_balance
    connection.execute(_PUT_CLOCK_BACK, {"id": organization_id})
    if start != balance:
        unnamed = {"id": organization_id, "reference": None}
        _write(connection, unnamed, balance=start, amount=start - balance, sandbox=True)
    return start


def latest(connection: Connection, scope: Scope, *, at_most: int) -> list[Refill]:
    """Return up to `at_most` refills of an organization and mode, newest first."""
    parameters = {"id": scope.organization_id, "sandbox": scope.sandbox, "at_most": at_most}
    return [Refill._make(row) for row in connection.execute(_LATEST, parameters)]


_LATEST = text(f"""
    SELECT {refills.columns} FROM refills WHERE organization_id = :id AND sandbox = :sandbox
    ORDER BY created_at DESC, id DESC LIMIT :at_most
""")


def _lock(connection: Connection, organization_id: int) -> Row[tuple[int, int, int, int | None, bool]]:
    """Lock the organization's row and return its balances, so that no change of a balance overwrites another."""
    lock_organization(connection, organization_id)
    return connection.execute(_BALANCES, {"id": organization_id}).one()


def _write(connection: Connection, names: Mapping[str, Any], *, balance: int, amount: int, sandbox: bool) -> Refill:
    """Book a refill by its `names`: the organization's `id`, and the reference."""
    row = connection.execute(_WRITE, {**names, "sandbox": sandbox, "amount": amount, "balance": balance}).one()
    at = {"id": names["id"], "balance": balance, "created_at": row.created_at}
    connection.execute(_SET_SANDBOX if sandbox else _SET_LIVE, at)
    more = {"amount": amount, "reference": names["reference"]}
    organizations.write_event(connection, event_types.BALANCE_REFILLED, names["id"], sandbox=sandbox, **more)
    return Refill._make(row)


_PUT_CLOCK_BACK = text("UPDATE organizations SET sandbox_ahead = '0' WHERE id = :id AND sandbox_ahead > '0'")
_BALANCES = text("""
    SELECT balance, sandbox_balance, sandbox_start_balance, low_balance, low_balance_told
    FROM organizations WHERE id = :id
""")
_BY_REFERENCE = text(f"SELECT {refills.columns} FROM refills WHERE organization_id = :id AND reference = :reference")
_WRITE = text(f"""
    INSERT INTO refills (organization_id, sandbox, amount, balance, reference, created_at)
    VALUES (:id, :sandbox, :amount, :balance, :reference,
            time_of(CAST(:id AS bigint), CAST(:sandbox AS boolean)))
    RETURNING {refills.columns}
""")
_TOLD = "CASE WHEN :balance < balance THEN coalesce(:balance < low_balance, false) ELSE low_balance_told END"
_SET_LIVE, _SET_SANDBOX = (
    text(f"""
    UPDATE organizations SET {mode}balance = :balance, {mode}last_refill = :balance,
                             {mode}counted_until = still_counted_until({mode}counted_until, :created_at){more}
    WHERE id = :id
""")
    for mode, more in (("", f", low_balance_told = {_TOLD}"), ("sandbox_", ""))
)
