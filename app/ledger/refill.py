"""Refills: points put into an organization's live or sandbox balance."""

import re
from datetime import datetime
from typing import NamedTuple

from sqlalchemy import Connection, Row, text

from app import organizations
from app.errors import Refused
from app.events import log
from app.postgres.locks import lock_organization
from app.settings import INT64_MAX

_REFERENCE = re.compile(r"\S{1,128}")


def refill(
    connection: Connection, organization_id: int, amount: int, *, sandbox: bool = False, reference: str | None = None
) -> int:
    """Add points to a balance, keep the refill as a row, and return the new balance.

    Raises:
        NotFound: there is no such organization.
        Refused: the amount is not positive, or the balance would leave 64 bits.
    """
    locked = _lock(connection, organization_id)
    balance = locked.sandbox_balance if sandbox else locked.balance
    if amount < 1:
        raise Refused(f"The amount of a refill must be at least 1 point, but is {amount}.")
    if balance + amount > INT64_MAX:
        raise Refused(f"A refill of {amount} points would take the balance of {balance} over {INT64_MAX}.")
    return _write(
        connection, organization_id, balance=balance + amount, amount=amount, sandbox=sandbox, reference=reference
    )


def open_organization(connection: Connection, name: str, *, balance: int, sandbox_balance: int) -> int:
    """Make an organization and return its id. The opening balances are refills; a reset restores the sandbox's.

    Raises:
        Refused: the name is blank, too long or not valid text.
    """
    organization_id = organizations.create(connection, name, sandbox_start_balance=sandbox_balance)
    for amount, sandbox in ((balance, False), (sandbox_balance, True)):
        if amount:
            refill(connection, organization_id, amount, sandbox=sandbox)
    return organization_id


def refill_once(
    connection: Connection, organization_id: int, amount: int, reference: str, *, sandbox: bool = False
) -> int | None:
    """Refill, unless a refill with this reference is in the books already: then return None and book nothing.

    Args:
        reference: the operator's name for the refill, unique in the organization; 1 to 128 visible characters.

    Raises:
        NotFound: there is no such organization.
        Refused: the reference belongs to a different refill; or as by `refill`.
    """
    if not (_REFERENCE.fullmatch(reference) and reference.isprintable()):
        raise Refused("The reference of a refill must be 1 to 128 visible characters.")
    # Of two with one reference, the second sees what the first has booked.
    lock_organization(connection, organization_id)
    booked = connection.execute(_BOOKED, {"id": organization_id, "reference": reference}).one_or_none()
    if booked is None:
        return refill(connection, organization_id, amount, sandbox=sandbox, reference=reference)
    if (booked.amount, booked.sandbox) != (amount, sandbox):
        mode = "sandbox" if booked.sandbox else "live"
        raise Refused(
            f"The reference {reference} is that of a refill of {booked.amount} {mode} points, booked before."
            " Nothing is booked now. Another refill needs another reference."
        )
    return None


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
        _write(connection, organization_id, balance=start, amount=start - balance, sandbox=True)
    return start


class Refill(NamedTuple):
    """A refill in the books, with the balance right after it. A reset of the sandbox may have taken points away."""

    amount: int
    balance: int
    reference: str | None
    created_at: datetime


def latest(connection: Connection, organization_id: int, *, sandbox: bool, at_most: int) -> list[Refill]:
    """Return up to `at_most` refills of an organization and mode, newest first."""
    parameters = {"id": organization_id, "sandbox": sandbox, "at_most": at_most}
    return [Refill._make(row) for row in connection.execute(_LATEST, parameters)]


_LATEST = text("""
    SELECT amount, balance, reference, created_at FROM refills WHERE organization_id = :id AND sandbox = :sandbox
    ORDER BY created_at DESC, id DESC LIMIT :at_most
""")


def _lock(connection: Connection, organization_id: int) -> Row[tuple[int, int, int]]:
    """Lock the organization's row and return its balances, so that no change of a balance overwrites another."""
    lock_organization(connection, organization_id)
    return connection.execute(_BALANCES, {"id": organization_id}).one()


def _write(
    connection: Connection,
    organization_id: int,
    *,
    balance: int,
    amount: int,
    sandbox: bool,
    reference: str | None = None,
) -> int:
    connection.execute(_SET_SANDBOX if sandbox else _SET_LIVE, {"id": organization_id, "balance": balance})
    row = {"id": organization_id, "sandbox": sandbox, "amount": amount, "balance": balance, "reference": reference}
    connection.execute(_WRITE, row)
    log.write_of_organization(
        connection, log.BALANCE_REFILLED, organization_id, sandbox=sandbox, amount=amount, reference=reference
    )
    return balance


_PUT_CLOCK_BACK = text("UPDATE organizations SET sandbox_ahead = '0' WHERE id = :id AND sandbox_ahead > '0'")
_BALANCES = text("SELECT balance, sandbox_balance, sandbox_start_balance FROM organizations WHERE id = :id")
_BOOKED = text("SELECT amount, sandbox FROM refills WHERE organization_id = :id AND reference = :reference")
_WRITE = text("""
    INSERT INTO refills (organization_id, sandbox, amount, balance, reference, created_at)
    VALUES (:id, :sandbox, :amount, :balance, :reference, time_of(CAST(:id AS bigint), CAST(:sandbox AS boolean)))
""")
_SET_LIVE = text("UPDATE organizations SET balance = :balance, last_refill = :balance WHERE id = :id")
_SET_SANDBOX = text(
    "UPDATE organizations SET sandbox_balance = :balance, sandbox_last_refill = :balance WHERE id = :id"
)
