"""What callers see of an organization, a batch and a reversal: the same in answers, in events and in the console."""

from collections.abc import Mapping, Sequence
from datetime import datetime
from typing import Any

from app.values.timestamps import timestamp

# The statuses of a batch that may still change.
NOT_FINAL = ("awaiting_approval", "scheduled", "queued")


# What a list shows of a batch and of a reversal, in order; what only an issued or a done one has is null before.
BATCH = (
    *("batch_id", "status", "final", "refusal", "label", "metadata", "idempotency_key", "api_key_id", "sender"),
    *("approval", "counts", "created_at", "send_at", "issued_at", "amount", "current_balance"),
)
REVERSAL = (
    *("reversal_id", "status", "final", "refusal", "reason", "batch_id", "idempotency_key", "api_key_id"),
    *("created_at", "done_at", "amount", "current_balance"),
)


def listed_payload(fields: Sequence[str], row: Any, own: Mapping[str, Any], **more: object) -> dict[str, Any]:
    """A batch or a reversal, from a row that has these fields, but for its `own`; `more` stands before its points."""
    values = {name: own[name] if name in own else getattr(row, name) for name in fields}
    points = {name: values.pop(name) for name in ("amount", "current_balance")}
    shown = {name: timestamp(value) if isinstance(value, datetime) else value for name, value in values.items()}
    # Never null: a row without it is not to be shown.
    return {**shown, "created_at": timestamp(values["created_at"]), **more, **points}


def batch_counts(row: Any, *, credited: int, reversed_whole: int = 0) -> dict[str, int] | None:
    """The transactions of a batch by state; None if it is not issued."""
    if row.debited_count is None:
        return None
    return {
        "recipients": row.recipient_count,
        "debited": row.debited_count,
        "credited": credited,
        "held": row.debited_count - credited - reversed_whole,
        "unpaid": row.recipient_count - row.debited_count,
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
