"""Batches: reading them back, and deleting idempotency keys after their time."""

from collections.abc import Mapping, Sequence
from datetime import datetime
from typing import Any, NamedTuple

from sqlalchemy import Connection, text

from app.postgres.database import digest, fetch_all, row_with_id
from app.values.ids import POSITIONS
from app.values.payloads import NOT_FINAL, approval_of, sender_of

STATUSES = ("awaiting_approval", "scheduled", "queued", "issued", "refused", "cancelled", "rejected")
AWAITING_APPROVAL, SCHEDULED, QUEUED, ISSUED, REFUSED, CANCELLED, REJECTED = STATUSES
NEVER_ISSUED = (REFUSED, CANCELLED, REJECTED)  # Final without a transaction.
# The states of a transaction.
STATES = CREDITED, HELD, UNPAID, REVERSED, RETURNED = "credited", "held", "unpaid", "reversed", "returned"

# What a batch and its replay answer, as far as neither its transactions nor the balances tell it: `digest` binds these.
# Its addresses are not among them, and `send_at` may move.
DIGESTED = (
    *("id", "organization_id", "sandbox", "api_key_id", "member_id", "amount", "atomic", "label", "metadata"),
    *("hold_days", "idempotency_key", "idempotency_hash", "created_at"),
    *("refusal", "cancelled_at", "issued_at", "organization_name", "last_refill"),
    *("approved_at", "rejected_at", "answered_by_member_id", "answered_by_key_id", "rejection_reason"),
)

IDEMPOTENCY_KEY_KEPT_DAYS = 31  # The contract promises 30; one more allows for clocks that differ.


class BatchRow(NamedTuple):
    """A batch without its recipients and metadata; its fields are columns of `batches`.

    `sender` is the member who sent it, as a User: `{"id", "first_name", "last_name"}`; None for a key's. `approval` is
    as callers see it; None unless it was approved or rejected.
    """

    id: int
    organization_id: int
    sandbox: bool
    status: str
    api_key_id: int | None
    member_id: int | None
    amount: int | None
    label: str | None
    idempotency_key: str | None
    recipient_count: int
    created_at: datetime
    send_at: datetime | None
    refusal: str | None
    issued_at: datetime | None
    debited_count: int | None
    debited_amount: int | None
    current_balance: int | None
    organization_name: str | None
    last_refill: int | None
    held_until: datetime | None
    approval: Mapping[str, Any] | None
    organization_created_at: datetime
    sender: Mapping[str, Any] | None

    @property
    def is_final(self) -> bool:
        """Tell whether its status will not change."""
        return self.status not in NOT_FINAL


class TransactionRow(NamedTuple):
    """One transaction with its user, if it has one; everything else that it shows is in its batch.

    `claimed`: it was held when it was issued, and credited later. `points_left` is None until points are taken back.
    `returned`: its points went back because they were held for too long. `amount`, `label` and `held_until` are None
    where they are the batch's.
    """

    id: int
    email: str
    balance: int
    debited: bool
    credited: bool
    claimed: bool
    amount: int | None
    label: str | None
    reference: str | None
    points_left: int | None
    held_until: datetime | None
    returned: bool
    user_id: int | None
    first_name: str | None
    last_name: str | None


def get(connection: Connection, batch_id: int, *, organization_id: int, sandbox: bool) -> BatchRow:
    """Return one batch of an organization and mode.

    Raises:
        NotFound: they have no such batch.
    """
    parameters = {"id": batch_id, "organization_id": organization_id, "sandbox": sandbox}
    return BatchRow._make(row_with_id(connection, _FIND, parameters, "batch"))


def find_accepted(connection: Connection, batch_id: int, *, organization_id: int) -> BatchRow | None:
    """Return a batch just accepted for this caller. None means that PostgreSQL lost it: no batch is ever deleted."""
    row = connection.execute(_FIND_ACCEPTED, {"id": batch_id, "organization_id": organization_id}).one_or_none()
    return None if row is None else BatchRow._make(row)


# The columns of a batch among the fields of `BatchRow`: all but the last three.
COLUMNS = BatchRow._fields[:-3]
# The fields of `BatchRow` and `TransactionRow`, in order.
_BESIDE_COLUMNS = (approval_of("b."), "o.created_at", sender_of("b.member_id"))
_BATCH = ", ".join([*(f"b.{column}" for column in COLUMNS), *_BESIDE_COLUMNS])
_TRANSACTION = """
    transaction_id(t.batch_id, t.position), t.email, t.balance, t.debited, t.credited, t.claimed_at IS NOT NULL,
    t.amount, t.label, t.reference, t.points_left, t.held_until, t.returned_at IS NOT NULL, u.id, u.first_name,
    u.last_name
"""

_BY_ID = f"""
    SELECT {_BATCH} FROM batches b JOIN organizations o ON o.id = b.organization_id
    WHERE b.id = :id AND b.organization_id = :organization_id
"""
_FIND_ACCEPTED = text(_BY_ID)
_FIND = text(f"{_BY_ID} AND b.sandbox = :sandbox")


def transactions_of(
    connection: Connection, batch_id: int, *, organization_id: int, first: int = 0, at_most: int = POSITIONS
) -> list[TransactionRow]:
    """Return the transactions of a batch in request order: all, or up to `at_most` from position `first` on."""
    place = {"first": first, "last": first + at_most - 1}
    parameters = {"batch_id": batch_id, "organization_id": organization_id, **place}
    return list(map(TransactionRow._make, fetch_all(connection, _TRANSACTIONS, parameters, binary=True)))


_TRANSACTIONS = f"""
    SELECT {_TRANSACTION}
    FROM transactions t LEFT JOIN users u ON u.id = t.user_id
    WHERE t.batch_id = %(batch_id)s AND t.organization_id = %(organization_id)s
      AND t.position BETWEEN %(first)s::int AND %(last)s::int
    ORDER BY t.position
""".encode()


def find_metadata(
    connection: Connection, batch_ids: Sequence[int], *, organization_id: int
) -> dict[int, dict[str, str]]:
    """Return the metadata of the given batches, without those that have none."""
    rows = connection.execute(_FIND_METADATA, {"batch_ids": list(batch_ids), "organization_id": organization_id})
    return {batch_id: metadata for batch_id, metadata in rows}  # noqa: C416  # The rows have no type to be a dict of.


_FIND_METADATA = text("""
    SELECT id, metadata FROM batches
    WHERE id = ANY(:batch_ids) AND organization_id = :organization_id AND metadata IS NOT NULL
""")


def find_final(connection: Connection, batch_ids: Sequence[int]) -> dict[int, tuple[BatchRow, list[TransactionRow]]]:
    """Return those of the given batches that are final, each with its transactions, in one statement.

    For a few small batches. It does not check the organization: the front has already matched batches and callers.
    """
    found: dict[int, tuple[BatchRow, list[TransactionRow]]] = {}
    parameters = {"batch_ids": str(list(batch_ids)), "first": min(batch_ids), "last": max(batch_ids)}
    for row in fetch_all(connection, _FIND_FINAL, parameters):
        _, transactions = found.setdefault(row[0], (BatchRow(*row[:_BATCH_WIDTH]), []))
        if row[_BATCH_WIDTH] is not None:  # Only an issued batch has transactions.
            transactions.append(TransactionRow(*row[_BATCH_WIDTH:]))
    return found


_BATCH_WIDTH = len(BatchRow._fields)
_IS_FINAL = f"status NOT IN {NOT_FINAL}"

# PostgreSQL keeps the plan, which may be made while the tables are small. So each row is looked up by itself: LIMIT and
# OFFSET prevent a join. With a join, every send read all transactions until the table was first analysed: with ten
# batches of 10,000 stored, a send took PostgreSQL 8 ms instead of 1.6, and the rate halved.
#
# The ids come as JSON: the length of an array would be known, and PostgreSQL would plan anew at each call, because the
# kept plan is made for more. That takes four times as long as the read.
#
# The bounds leave partitions out before any is opened: with sixty, the read takes 139 us instead of 330, and 97 of one.
_FIND_FINAL = f"""
    SELECT {_BATCH}, {_TRANSACTION}
    FROM (SELECT one::bigint AS id FROM jsonb_array_elements_text(%(batch_ids)s::jsonb) one) AS asked
    CROSS JOIN LATERAL (SELECT * FROM batches WHERE batches.id = asked.id AND {_IS_FINAL} LIMIT 1) b
    CROSS JOIN LATERAL (SELECT created_at FROM organizations WHERE organizations.id = b.organization_id LIMIT 1) o
    LEFT JOIN LATERAL (SELECT * FROM transactions
                       WHERE batch_id = b.id AND organization_id = b.organization_id
                         AND batch_id BETWEEN at_start(%(first)s) AND at_start(%(last)s) OFFSET 0) t ON true
    LEFT JOIN LATERAL (SELECT id, first_name, last_name FROM users WHERE users.id = t.user_id LIMIT 1) u ON true
    ORDER BY b.id, t.position
""".encode()


def final_among(connection: Connection, batch_ids: Sequence[int]) -> list[int]:
    """Return the ids of the final batches and reversals among these, whose ids come from one sequence."""
    return list(connection.execute(_FINAL_AMONG, {"batch_ids": list(batch_ids)}).scalars())


_FINAL_AMONG = text(f"""
    SELECT id FROM batches WHERE id = ANY(:batch_ids) AND {_IS_FINAL}
    UNION ALL
    SELECT id FROM reversals WHERE id = ANY(:batch_ids) AND status <> 'queued'
""")


def forget_idempotency_keys(connection: Connection, *, older_than_days: int, at_most: int) -> int:
    """Delete up to `at_most` idempotency keys past their time, the oldest first; return how many.

    Their time runs from the issue, cancellation or rejection of the batch. A batch that is none of these keeps its key.
    """
    parameters = {"older_than_days": older_than_days, "at_most": at_most}
    return connection.execute(_FORGET_IDEMPOTENCY_KEYS, parameters).rowcount


# A subquery reads the clock once: a value that may change from row to row cannot be looked up in an index.
_FORGET_IDEMPOTENCY_KEYS = text(f"""
    UPDATE batches b
    SET idempotency_key = NULL, idempotency_hash = NULL,
        digest = {digest(DIGESTED, "b", idempotency_key="NULL", idempotency_hash="NULL")}
    WHERE id = ANY(ARRAY(SELECT id FROM batches
                         WHERE idempotency_key IS NOT NULL AND coalesce(issued_at, cancelled_at, rejected_at)
                               < (SELECT clock_timestamp() - make_interval(days => :older_than_days))
                         ORDER BY coalesce(issued_at, cancelled_at, rejected_at) LIMIT :at_most))
""")
