"""Extending: points are held until a later time."""

from datetime import datetime, timedelta
from typing import Any

from sqlalchemy import Connection, text

from app.errors import CannotExtend, Fault, InvalidRequest
from app.fields.field import Table
from app.fields.kinds import Timestamp
from app.ledger.holders import exclude_claims
from app.postgres.database import row_with_id
from app.postgres.locks import lock_organization
from app.values.ids import batch_and_position
from app.values.timestamps import HOLD_DAYS_MAX, timestamp

HELD_UNTIL = Timestamp(
    "held_until",
    f"Until when to hold the points: ISO 8601 with a zone, later than now, at most {HOLD_DAYS_MAX:,} days ahead.",
    is_required=True,
)
EXTEND = Table("Extend", "A later end for a held transaction.", HELD_UNTIL)


class NotLater(InvalidRequest):
    """The new end is before the one that the transaction has, `held_until`."""

    def __init__(self, held_until: datetime) -> None:
        super().__init__({"held_until": [f"The held_until must be later than it is, {timestamp(held_until)}."]})
        self.held_until = held_until


def extend(
    connection: Connection, transaction_id: int, held_until: datetime, *, organization_id: int, sandbox: bool
) -> bool:
    """Hold a transaction until a later time. False, and nothing changes, if it is held until exactly that time.

    The organization's row is locked first, as by a return and a reversal, and claims are excluded. So a claim, reversal
    or return of the points comes either before the extension or after it.

    Raises:
        NotFound: the organization has no such transaction in this mode.
        CannotExtend: it is not held, is held without end, or its end has passed.
        NotLater: the time is before the end that it has.
        InvalidRequest: the time is too far ahead.
    """
    batch_id, position = batch_and_position(transaction_id)
    parameters = {
        "id": transaction_id,
        "batch_id": batch_id,
        "position": position,
        "organization_id": organization_id,
        "sandbox": sandbox,
        "held_until": held_until,
    }
    lock_organization(connection, organization_id)
    if not sandbox:
        exclude_claims(connection, organization_id)
    row = row_with_id(connection, _FIND, parameters, "transaction")
    if (sentence := _conflict(row)) is not None:
        raise CannotExtend(sentence)
    if held_until == row.held_until:  # A repeated call.
        return False
    if held_until < row.held_until:
        raise NotLater(row.held_until)
    if held_until > row.now + timedelta(days=HOLD_DAYS_MAX):
        raise InvalidRequest({"held_until": [Fault("The held_until", f"must be at most {HOLD_DAYS_MAX} days ahead.")]})
    connection.execute(_EXTEND, parameters)
    return True


def _conflict(row: Any) -> str | None:
    """Say why a transaction cannot be held for longer; None when it can."""
    reasons = (
        (not row.debited, "The transaction was not debited, so nothing is held."),
        (
            row.returned_at is not None,
            "The points were held too long and went back to the organization: send them again.",
        ),
        (row.points_left == 0, "All points of the transaction were taken back, so nothing is held."),
        (row.credited, "The points are credited to a user and no longer held."),
        (row.held_until is None, "The points are held for ever: there is no end to move."),
        (
            row.held_until is not None and row.held_until <= row.now,
            "The points were held too long and go back to the organization: send them again.",
        ),
    )
    return next((sentence for is_so, sentence in reasons if is_so), None)


_FIND = text("""
    SELECT t.debited, t.credited, t.points_left, t.returned_at, coalesce(t.held_until, b.held_until) AS held_until,
           time_of(t.organization_id, t.sandbox) AS now
    FROM transactions t JOIN batches b ON b.id = t.batch_id AND b.organization_id = t.organization_id
    WHERE (t.batch_id, t.position) = (:batch_id, :position)
      AND t.organization_id = :organization_id AND t.sandbox = :sandbox
""")
_EXTEND = text("""
    UPDATE transactions SET held_until = :held_until
    WHERE (batch_id, position) = (:batch_id, :position) AND organization_id = :organization_id
""")
