"""What callers see of a batch and its transactions, built by pure functions."""

from collections.abc import Iterable, Mapping, Sequence
from itertools import groupby
from typing import Any

import orjson
from pydantic import BaseModel
from sqlalchemy import Connection, text

from app.batches.batch import ISSUED, Batch, StateCounts, batches
from app.batches.transaction import CREDITED, HELD, RETURNED, REVERSED, UNPAID, Transaction, TransactionRow
from app.noun_fields import Points, says
from app.organizations import OrganizationInMode, in_mode
from app.values.timestamps import timestamp


class SendResult(BaseModel):
    """An issued batch: one transaction per recipient, in the order of the request."""

    transactions: list[Transaction] = says("One per recipient, in the order of the request.")
    amount: Points = says("The sum of the debited transactions.", 100)
    current_balance: Points = says("The balance right after this batch.", 900)


def issued_payload(batch: Batch, transactions: Sequence[TransactionRow], *, as_issued: bool) -> dict[str, Any]:
    """Send result: the transactions, the sum of the debited ones, and the balance right after the batch.

    With `as_issued`, flags, recipients and points taken back are those of the time of issue, without later claims and
    reversals: a retry gets the answer that the first call got.
    """
    assert batch.status == ISSUED, "only an issued batch has a send result"
    return {
        "transactions": _payloads_of(batch, transactions, as_issued=as_issued),
        "amount": batch.debited_amount,
        "current_balance": batch.current_balance,
    }


def whole_batch_payload(
    batch: Batch, transactions: Sequence[TransactionRow], *, metadata: Mapping[str, str] | None
) -> dict[str, Any]:
    """A batch as it is now; the keys of the send result are null until it is issued."""
    bodies = _payloads_of(batch, transactions, as_issued=False) if batch.status == ISSUED else None
    whole = sum(row.points_left == 0 for row in transactions)
    credited = sum(row.credited and row.points_left != 0 for row in transactions)
    return batches.payload(
        batch._replace(metadata=metadata, states=StateCounts(credited, reversed=whole), transactions=bodies)
    )


def transaction_payloads(rows: Iterable[tuple[Batch, TransactionRow]]) -> list[dict[str, Any]]:
    """Transactions as they are now, from rows of a batch and a transaction; rows of the same batch are adjacent."""
    bodies = []
    for _, group in groupby(rows, key=lambda row: row[0].id):
        of_batch = list(group)
        transactions = [transaction for _, transaction in of_batch]
        bodies += _payloads_of(of_batch[0][0], transactions, as_issued=False)
    return bodies


def _payloads_of(batch: Batch, transactions: Sequence[TransactionRow], *, as_issued: bool) -> list[dict[str, Any]]:
    assert batch.issued_at is not None, "an issued batch is complete (ck_batches_issued_when_complete)"
    before, after = _organization_around_its_balance(batch)
    created_at = timestamp(batch.issued_at)
    bodies = []
    for row in transactions:
        held_then = as_issued and row.claimed
        credited = row.credited and not held_then
        amount = batch.amount if row.amount is None else row.amount
        state = _state(row, credited=credited, as_issued=as_issued)
        bodies.append(
            {
                "id": row.id,
                "organization": orjson.Fragment(before + b"%d" % row.balance + after),
                "recipient": None
                if row.user_id is None or held_then
                else {"id": row.user_id, "first_name": row.first_name, "last_name": row.last_name},
                "email": row.email,
                "amount": amount,
                "debited": row.debited,
                "credited": credited,
                "allocated": credited,  # The contract's table of flags: the two are always equal.
                "sender": batch.sender,
                "label": batch.label if row.label is None else row.label,
                "reference": row.reference,
                "reversed": 0 if row.points_left is None or as_issued else (amount or 0) - row.points_left,
                "held_until": _held_until(batch, row, as_issued=as_issued) if state == HELD else None,
                "state": state,
                "sandbox": batch.sandbox,
                "created_at": created_at,
            }
        )
    return bodies


def _state(row: TransactionRow, *, credited: bool, as_issued: bool) -> str:
    if row.points_left == 0 and not as_issued:
        return RETURNED if row.returned else REVERSED
    if credited:
        return CREDITED
    return HELD if row.debited else UNPAID


def _held_until(batch: Batch, row: TransactionRow, *, as_issued: bool) -> str | None:
    moment = batch.held_until if as_issued or row.held_until is None else row.held_until
    return None if moment is None else timestamp(moment)


def _organization_around_its_balance(batch: Batch) -> tuple[bytes, bytes]:
    """Render the organization once for the whole batch, as the parts before and after the balance.

    An organization that issues is neither disabled nor suspended: the drain checked that under the lock.
    """
    assert batch.organization_name is not None, "an issued batch is complete (ck_batches_issued_when_complete)"
    assert batch.last_refill is not None, "an issued batch is complete (ck_batches_issued_when_complete)"
    organization = OrganizationInMode(
        id=batch.organization_id,
        name=batch.organization_name,
        is_disabled=False,
        is_suspended=False,
        balance=0,
        last_refill=batch.last_refill,
        created_at=batch.organization_created_at,
    )
    before, balance, after = orjson.dumps(in_mode.payload(organization)).partition(b'"balance":0')
    return before + balance[:-1], after


def count_states(connection: Connection, batch_ids: Sequence[int], *, organization_id: int) -> dict[int, StateCounts]:
    """Return how many transactions of each batch are credited or reversed now; a batch without any may be missing."""
    rows = connection.execute(_COUNT_STATES, {"batch_ids": list(batch_ids), "organization_id": organization_id})
    return {batch_id: StateCounts(*counts) for batch_id, *counts in rows}


_COUNT_STATES = text("""
    SELECT batch_id, count(*) FILTER (WHERE points_left IS DISTINCT FROM 0), count(*) FILTER (WHERE points_left = 0)
    FROM transactions
    WHERE batch_id = ANY(:batch_ids) AND organization_id = :organization_id AND (credited OR points_left = 0)
    GROUP BY batch_id
""")
