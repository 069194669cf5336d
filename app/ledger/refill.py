"""Refills: points put into an organization's live or sandbox balance."""

import re
from collections.abc import Mapping
from typing import Any, NamedTuple

from sqlalchemy import Connection, Row, text

from app import organizations
from app.actions import log as actions
from app.errors import IdempotencyKeyReused, RefillConflict, RefillTooLarge, Refused
from app.events import event_types
from app.organizations import Refill, refills
from app.postgres.locks import lock_organization
from app.scope import Scope
from app.settings import INT64_MAX

_REFERENCE = re.compile(r"\S{1,128}")


class Booked(NamedTuple):
    """A refill, whether it was booked just now, and, if not, whether its idempotency key is that of the call."""

    refill: Refill
    is_new: bool
    is_replay: bool = False


def refill(connection: Connection, organization_id: int, amount: int, *, sandbox: bool = False) -> int:
    """Add points to a balance, keep the refill as a row, and return the new balance.

    Raises:
        NotFound: there is no such organization.
        Refused: the amount is not positive, or the balance would leave 64 bits.
    """
    return refill_once(connection, organization_id, amount, sandbox=sandbox).refill.balance


def open_organization(
    connection: Connection,
    name: str,
    *,
    balance: int,
    sandbox_balance: int,
    **options: int | None,
) -> int:
    """Make an organization and return its id. The opening balances are refills; a reset restores the sandbox's.

    Args:
        options: as `organizations.create` takes them.

    Raises:
        Refused: the name is blank, too long or not valid text.
    """
    organization_id = organizations.create(connection, name, sandbox_start_balance=sandbox_balance, **options)
    actions.record_of_organization(connection, actions.ORGANIZATION_MADE, organization_id)
    for amount, sandbox in ((balance, False), (sandbox_balance, True)):
        if amount:
            refill(connection, organization_id, amount, sandbox=sandbox)
    return organization_id


def refill_once(
    connection: Connection,
    organization_id: int,
    amount: int,
    *,
    sandbox: bool = False,
    reference: str | None = None,
    idempotency_key: str | None = None,
) -> Booked:
    """Add points to a balance, unless a refill with this idempotency key or reference is in the books already.

    Args:
        reference: a name for the refill, unique in the organization; 1 to 128 visible characters.

    Raises:
        NotFound: there is no such organization.
        IdempotencyKeyReused: the key belongs to a different refill.
        RefillConflict: the reference belongs to a different refill.
        Refused: the amount is not positive, the balance would leave 64 bits, or the reference is not acceptable.
    """
    if reference is not None and not (_REFERENCE.fullmatch(reference) and reference.isprintable()):
        raise Refused("The reference of a refill must be 1 to 128 visible characters.")
    # Of two with the same key or reference, the second sees what the first has booked.
    locked = _lock(connection, organization_id)
    names = {"id": organization_id, "reference": reference, "idempotency_key": idempotency_key}
    if idempotency_key is not None and (known := connection.execute(_BY_KEY, names).one_or_none()) is not None:
        if (known.amount, known.sandbox, known.reference) != (amount, sandbox, reference):
            raise IdempotencyKeyReused
        return Booked(Refill._make(known), is_new=False, is_replay=True)
    if reference is not None and (known := connection.execute(_BY_REFERENCE, names).one_or_none()) is not None:
        if (known.amount, known.sandbox) != (amount, sandbox):
            raise RefillConflict(reference, known.amount, "sandbox" if known.sandbox else "live")
        return Booked(Refill._make(known), is_new=False)
    balance = locked.sandbox_balance if sandbox else locked.balance
    if amount < 1:
        raise Refused(f"The amount of a refill must be at least 1 point, but is {amount}.")
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
        unnamed = {"id": organization_id, "reference": None, "idempotency_key": None}
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


def _lock(connection: Connection, organization_id: int) -> Row[tuple[int, int, int]]:
    """Lock the organization's row and return its balances, so that no change of a balance overwrites another."""
    lock_organization(connection, organization_id)
    return connection.execute(_BALANCES, {"id": organization_id}).one()


def _write(connection: Connection, names: Mapping[str, Any], *, balance: int, amount: int, sandbox: bool) -> Refill:
    """Book a refill by its `names`: the organization's `id`, the reference and the idempotency key."""
    row = connection.execute(_WRITE, {**names, "sandbox": sandbox, "amount": amount, "balance": balance}).one()
    at = {"id": names["id"], "balance": balance, "created_at": row.created_at}
    connection.execute(_SET_SANDBOX if sandbox else _SET_LIVE, at)
    more = {"amount": amount, "reference": names["reference"]}
    organizations.write_event(connection, event_types.BALANCE_REFILLED, names["id"], sandbox=sandbox, **more)
    return Refill._make(row)


_PUT_CLOCK_BACK = text("UPDATE organizations SET sandbox_ahead = '0' WHERE id = :id AND sandbox_ahead > '0'")
_BALANCES = text("SELECT balance, sandbox_balance, sandbox_start_balance FROM organizations WHERE id = :id")
_BY_REFERENCE = text(f"SELECT {refills.columns} FROM refills WHERE organization_id = :id AND reference = :reference")
_BY_KEY = text(
    f"SELECT {refills.columns} FROM refills WHERE organization_id = :id AND idempotency_key = :idempotency_key"
)
_WRITE = text(f"""
    INSERT INTO refills (organization_id, sandbox, amount, balance, reference, idempotency_key, created_at)
    VALUES (:id, :sandbox, :amount, :balance, :reference, :idempotency_key,
            time_of(CAST(:id AS bigint), CAST(:sandbox AS boolean)))
    RETURNING {refills.columns}
""")
_SET_LIVE, _SET_SANDBOX = (
    text(f"""
    UPDATE organizations SET {mode}balance = :balance, {mode}last_refill = :balance,
                             {mode}counted_until = still_counted_until({mode}counted_until, :created_at)
    WHERE id = :id
""")
    for mode in ("", "sandbox_")
)
