"""Rows as the database returns them: a batch and its transactions, in a test's own values."""

from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any

from app.batches.read import ISSUED, QUEUED, BatchRow, TransactionRow

MOMENT = datetime(2026, 1, 31, 9, 30, tzinfo=UTC)


@dataclass(frozen=True, kw_only=True)
class Issue:
    """One issued batch and its transactions."""

    batch: BatchRow
    transactions: list[TransactionRow]


def queued_batch(**changes: Any) -> BatchRow:
    """Return a batch of the organization 7 as it is before any worker has seen it."""
    batch = BatchRow(
        id=42,
        organization_id=7,
        sandbox=False,
        status=QUEUED,
        api_key_id=1,
        member_id=None,
        amount=30,
        label=None,
        idempotency_key=None,
        recipient_count=3,
        created_at=MOMENT,
        send_at=None,
        refusal=None,
        issued_at=None,
        debited_count=None,
        debited_amount=None,
        current_balance=None,
        organization_name=None,
        last_refill=None,
        held_until=None,
        organization_created_at=MOMENT,
        sender=None,
    )
    return batch._replace(**changes)


def issued_batch(**changes: Any) -> BatchRow:
    """Return a batch that two of three recipients were debited for; the balance was 70 before it."""
    fields: dict[str, Any] = {
        "status": ISSUED,
        "issued_at": MOMENT.replace(microsecond=5),
        "debited_count": 2,
        "debited_amount": 60,
        "current_balance": 10,
        "organization_name": "Acme",
        "last_refill": 500,
    }
    return queued_batch(**(fields | changes))


def transaction(**changes: Any) -> TransactionRow:
    """Return a transaction that was credited to a user."""
    row = TransactionRow(
        id=1001,
        email="Ada@example.com",
        balance=40,
        debited=True,
        credited=True,
        claimed=False,
        amount=None,
        label=None,
        reference=None,
        points_left=None,
        held_until=None,
        returned=False,
        user_id=5,
        first_name="Ada",
        last_name="Lovelace",
    )
    return row._replace(**changes)


def issue() -> Issue:
    """Return a batch with one transaction of each case: credited, held, and not paid for."""
    nobody: dict[str, Any] = {"credited": False, "user_id": None, "first_name": None, "last_name": None}
    return Issue(
        batch=issued_batch(),
        transactions=[
            transaction(),
            transaction(id=1002, email="b@example.com", balance=10, **nobody),
            transaction(id=1003, email="c@example.com", balance=10, debited=False, credited=False, user_id=6),
        ],
    )
