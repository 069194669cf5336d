"""What callers see of a reversal and its entries, built by pure functions."""

from collections.abc import Sequence
from typing import Any

from app.reversals.preview import Recoverable
from app.reversals.read import QUEUED, EntryRow, ReversalRow, reversed_transactions
from app.values import payloads


def reverse_result(reversal: ReversalRow, entries: Sequence[EntryRow]) -> dict[str, Any]:
    """Reverse result: what was taken from each transaction, the sum, and the balance right after it."""
    return {
        "reversal_id": reversal.id,
        "transactions": list(map(reversed_transactions.payload, entries)),
        "amount": reversal.reversed_amount,
        "current_balance": reversal.current_balance,
    }


def whole_reversal_payload(reversal: ReversalRow, entries: Sequence[EntryRow]) -> dict[str, Any]:
    """A reversal as it is now; the keys of the result are null until it is done."""
    shown = None if reversal.reversed_amount is None else list(map(reversed_transactions.payload, entries))
    return listed_reversal_payload(reversal, transactions=shown)


def listed_reversal_payload(reversal: ReversalRow, **more: object) -> dict[str, Any]:
    """A reversal as a list shows it, without its transactions."""
    listed = payloads.ListedReversal(
        reversal_id=reversal.id,
        status=reversal.status,
        final=reversal.status != QUEUED,
        refusal=reversal.refusal,
        reason=reversal.reason,
        batch_id=reversal.batch_id,
        idempotency_key=reversal.idempotency_key,
        api_key_id=reversal.api_key_id,
        created_at=reversal.created_at,
        done_at=reversal.done_at,
        amount=reversal.reversed_amount,
        current_balance=reversal.current_balance,
    )
    return payloads.listed_payload(listed, **more)


def recoverable_additions(found: Recoverable) -> dict[str, int]:
    """The additional data of verify, for programs: the points that would come back, and the transactions by state."""
    return {
        "recoverable": found.recoverable,
        "transactions": found.transactions,
        "held": found.held,
        "credited": found.credited,
        "already_reversed": found.already_reversed,
        "not_debited": found.not_debited,
    }
