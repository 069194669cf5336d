"""What callers see of an organization, a batch and a reversal: the same in answers, in events and in the console."""

from collections.abc import Mapping
from datetime import datetime
from typing import Any, NamedTuple, TypeVar

from app.values.timestamps import timestamp

# The statuses of a batch that may still change.
NOT_FINAL = ("awaiting_approval", "scheduled", "queued")


class ListedBatch(NamedTuple):
    """A batch without its transactions, in the order of its payload; what only an issued batch has is None before."""

    batch_id: int
    status: str
    final: bool
    refusal: str | None
    label: str | None
    metadata: Mapping[str, str] | None
    idempotency_key: str | None
    api_key_id: int | None
    sender: Mapping[str, Any] | None
    approval: Mapping[str, Any] | None
    counts: Mapping[str, int] | None
    created_at: datetime
    send_at: datetime | None
    issued_at: datetime | None
    amount: int | None
    current_balance: int | None


class ListedReversal(NamedTuple):
    """A reversal without its entries, in the order of its payload; what only a done one has is None before."""

    reversal_id: int
    status: str
    final: bool
    refusal: str | None
    reason: str
    batch_id: int | None
    idempotency_key: str | None
    api_key_id: int | None
    created_at: datetime
    done_at: datetime | None
    amount: int | None
    current_balance: int | None


Listed = TypeVar("Listed", ListedBatch, ListedReversal)


def listed(kind: type[Listed], row: Any, **own: Any) -> Listed:
    """Make a batch or a reversal from a row that has fields of its names, except its `own`."""
    return kind(*(own[name] if name in own else getattr(row, name) for name in kind._fields))


def listed_payload(listed: ListedBatch | ListedReversal, **more: object) -> dict[str, Any]:
    """A batch or a reversal; `more` stands before its points."""
    *fields, amount, balance = listed._asdict().items()
    shown = {
        name: timestamp(value) if isinstance(value, datetime) else value
        for name, value in [*fields, *more.items(), amount, balance]
    }
    return shown | {"created_at": timestamp(listed.created_at)}  # Never null: a row without it is not to be shown.


def batch_counts(*, recipients: int, debited: int, credited: int, reversed_whole: int) -> dict[str, int]:
    """The transactions of an issued batch by state."""
    return {
        "recipients": recipients,
        "debited": debited,
        "credited": credited,
        "held": debited - credited - reversed_whole,
        "unpaid": recipients - debited,
        "reversed": reversed_whole,
    }


def sender_of(member_id: str) -> str:
    """Return the SQL for a batch's `sender` from its `member_id`: a User, or null (without a look-up) if a key sent it.

    The names of a member never change.
    """
    return f"{_user_of(member_id)} AS sender"


def approval_of(batch: str = "") -> str:
    """Return the SQL for a batch's `approval`: who approved or rejected it, when, and why; null unless it was.

    `by` is a member as a User, and `api_key_id` a key. Both are null if nobody answered in time. `batch` is the prefix
    of its columns.
    """
    at = f"coalesce({batch}approved_at, {batch}rejected_at)"
    return f"""
        CASE WHEN {at} IS NOT NULL
             THEN json_build_object(
                 'by', {_user_of(f"{batch}answered_by_member_id")}, 'api_key_id', {batch}answered_by_key_id,
                 'at', to_char({at} AT TIME ZONE 'UTC', 'YYYY-MM-DD"T"HH24:MI:SS.US"Z"'),
                 'reason', {batch}rejection_reason) END AS approval
    """


def _user_of(member_id: str) -> str:
    return f"""
        CASE WHEN {member_id} IS NOT NULL
             THEN (SELECT json_build_object('id', m.id, 'first_name', m.first_name, 'last_name', m.last_name)
                   FROM members m WHERE m.id = {member_id}) END
    """
