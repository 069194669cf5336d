"""A batch: what callers see of it, its row, and deleting idempotency keys after their time."""

from collections.abc import Mapping, Sequence
from datetime import datetime
from typing import Annotated, Any, NamedTuple

from pydantic import BaseModel
from sqlalchemy import Connection, text

from app.batches.fields import KEPT
from app.batches.transaction import TRANSACTION, Transaction, TransactionRow
from app.noun import Noun
from app.noun_fields import Id, Points, Shown, Time, says, says_one_of
from app.organizations import MAY_NOT_ISSUE
from app.postgres.database import digest, fetch_all
from app.users import User

STATUSES = ("awaiting_approval", "scheduled", "queued", "issued", "refused", "cancelled", "rejected")
AWAITING_APPROVAL, SCHEDULED, QUEUED, ISSUED, REFUSED, CANCELLED, REJECTED = STATUSES
NOT_FINAL = (AWAITING_APPROVAL, SCHEDULED, QUEUED)
NEVER_ISSUED = (REFUSED, CANCELLED, REJECTED)  # Final without a transaction.

# What a batch and its replay answer, as far as neither its transactions nor the balances tell it: `digest` binds these.
# Its addresses are not among them, and `send_at` may move.
DIGESTED = (
    *("id", "organization_id", "sandbox", "api_key_id", "member_id", "amount", "atomic", "label"),
    *(*KEPT, "idempotency_key", "idempotency_hash", "created_at"),
    *("refusal", "cancelled_at", "issued_at", "organization_name", "last_refill"),
    *("approved_at", "rejected_at", "answered_by_member_id", "answered_by_key_id", "rejection_reason"),
)

IDEMPOTENCY_KEY_KEPT_DAYS = 31  # The contract promises 30; another day allows for clocks that differ.


class Counts(BaseModel):
    """How many of a batch's transactions are in each state now."""

    recipients: int = says("All of them.", 2, ge=1)
    debited: int = says("Debited from the balance.", 2, ge=0)
    credited: int = says("Credited to a user.", 1, ge=0)
    held: int = says("Debited, and held until there is an account with the address.", 1, ge=0)
    unpaid: int = says("Not debited: the balance was too low, or the user was erased before the issue.", 0, ge=0)
    reversed: int = says("Taken back completely.", 0, ge=0)


class StateCounts(NamedTuple):
    """How many transactions of a batch are in two of the states now; the other counts follow from these."""

    credited: int = 0
    reversed: int = 0


class Approval(BaseModel):
    """Who approved or rejected a batch, and when."""

    by: User | None = says("The member who did; null if a key did, or if nobody answered in time.", None)
    api_key_id: Id | None = says("The key that did; null if a member did, or if nobody answered in time.", 2)
    at: Time = says("When. ISO 8601 in UTC, six decimals.", "2026-01-31T09:30:00.475113Z")
    reason: str | None = says("Why it was rejected; null if it was approved.", None)


class Batch(NamedTuple):
    """A batch as it is now."""

    id: Annotated[Id, says("The id of the batch.", 1), Shown(name="batch_id")]
    organization_id: int
    sandbox: bool
    status: Annotated[
        str,
        says_one_of(
            STATUSES,
            "Scheduled: it waits for its `send_at`. Refused: the organization may not issue. Awaiting approval: another"
            " than its sender must approve or reject it.",
            "issued",
        ),
    ]
    refusal: Annotated[
        str | None,
        says_one_of(MAY_NOT_ISSUE, "Why it was refused, as a stable word; null unless it was refused.", None),
    ]
    label: Annotated[str | None, says("The label that it was sent with; null if none.", None)]
    idempotency_key: Annotated[
        str | None,
        says("The `Idempotency-Key` that it was sent with; null if none, and once it is no longer kept.", None),
    ]
    api_key_id: Annotated[Id | None, says("The id of the key that sent it; null if a member sent it.", 1)]
    member_id: int | None
    sender: Annotated[
        Mapping[str, Any] | None,
        says("The member who sent it from the console. Null: sent through this interface.", None),
        Shown(described=User | None),
    ]
    approval: Annotated[
        Mapping[str, Any] | None,
        says("Who approved or rejected it, and when; null unless it was.", None),
        Shown(described=Approval | None),
    ]
    amount: int | None
    recipient_count: int
    created_at: Annotated[
        datetime, says("When it was accepted. ISO 8601 in UTC, six decimals.", "2026-01-31T09:30:00.471006Z")
    ]
    send_at: Annotated[datetime | None, says("When it is to be issued; null if at once.", None)]
    issued_at: Annotated[
        datetime | None,
        says("When it was issued, ISO 8601 in UTC, six decimals; null until then.", "2026-01-31T09:30:00.482913Z"),
    ]
    debited_count: int | None
    debited_amount: Annotated[
        Points | None, says("The sum of the debited transactions; null until issued.", 100), Shown(name="amount")
    ]
    current_balance: Annotated[Points | None, says("The balance right after this batch; null until issued.", 900)]
    organization_name: str | None
    last_refill: int | None
    held_until: datetime | None
    organization_created_at: datetime
    # Who reads the row adds these, if an answer has them.
    metadata: Annotated[
        Mapping[str, str] | None,
        says("The metadata that it was sent with; null if none.", None),
        Shown(before="idempotency_key", described=dict[str, str] | None),
    ] = None
    states: StateCounts = StateCounts()
    transactions: Annotated[
        Sequence[Mapping[str, Any]] | None,
        says("One per recipient, in the order of the request; null until issued."),
        Shown(before="debited_amount", described=list[Transaction] | None),
    ] = None

    @property
    def is_final(
        self,
    ) -> Annotated[
        bool,
        says("Its status will not change. Rely on this, as more statuses may be added.", True),
        Shown(name="final", before="refusal"),
    ]:
        return self.status not in NOT_FINAL

    @property
    def counts(
        self,
    ) -> Annotated[
        Mapping[str, int] | None,
        says("How many transactions are in each state now; null until issued."),
        Shown(before="created_at", described=Counts | None),
    ]:
        if self.debited_count is None:
            return None
        credited, whole = self.states
        return {
            "recipients": self.recipient_count,
            "debited": self.debited_count,
            "credited": credited,
            "held": self.debited_count - credited - whole,
            "unpaid": self.recipient_count - self.debited_count,
            "reversed": whole,
        }


def points_of(batch: str = "") -> str:
    """Return the SQL for a batch's points, if everybody is paid; `batch` is the prefix of its columns."""
    return f"coalesce({batch}amount * {batch}recipient_count, {batch}running_totals[{batch}recipient_count])"


def sender_of(member_id: str) -> str:
    """Return the SQL for a batch's `sender` from its `member_id`: a User, or null (without a look-up) if a key sent it.

    The names of a member never change.
    """
    return f"""
        CASE WHEN {member_id} IS NOT NULL
             THEN (SELECT json_build_object('id', m.id, 'first_name', m.first_name, 'last_name', m.last_name)
                   FROM members m WHERE m.id = {member_id}) END
    """


def approval_of(batch: str = "") -> str:
    """Return the SQL for a batch's `approval`: who approved or rejected it, when, and why; null unless it was.

    `by` is a member as a User, and `api_key_id` a key. Both are null if nobody answered in time. `batch` is the prefix
    of its columns.
    """
    at = f"coalesce({batch}approved_at, {batch}rejected_at)"
    return f"""
        CASE WHEN {at} IS NOT NULL
             THEN json_build_object(
                 'by', {sender_of(f"{batch}answered_by_member_id")}, 'api_key_id', {batch}answered_by_key_id,
                 'at', to_char({at} AT TIME ZONE 'UTC', 'YYYY-MM-DD"T"HH24:MI:SS.US"Z"'),
                 'reason', {batch}rejection_reason) END
    """


_COMPUTED = {
    "sender": lambda batch: sender_of(f"{batch}member_id"),
    "approval": approval_of,
    "organization_created_at": lambda batch: (
        f"(SELECT o.created_at FROM organizations o WHERE o.id = {batch}organization_id)"
    ),
}
batches = Noun(Batch, "batch", "batches", computed=_COMPUTED)
listed_batches = Noun(
    Batch,
    "batch",
    "batches",
    computed=_COMPUTED,
    schema="ListedBatch",
    about="A batch as it is now, without its transactions.",
    without=("transactions",),
)


def find_accepted(connection: Connection, batch_id: int, *, organization_id: int) -> Batch | None:
    """Return a batch just accepted for this caller. None means that PostgreSQL lost it: no batch is ever deleted."""
    row = connection.execute(_FIND_ACCEPTED, {"id": batch_id, "organization_id": organization_id}).one_or_none()
    return None if row is None else Batch(*row)


_FIND_ACCEPTED = text(f"SELECT {batches.columns} FROM batches WHERE id = :id AND organization_id = :organization_id")


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


def find_final(connection: Connection, batch_ids: Sequence[int]) -> dict[int, tuple[Batch, list[TransactionRow]]]:
    """Return those of the given batches that are final, each with its transactions, in one statement.

    For a few small batches. It does not check the organization: the front has already matched batches and callers.
    """
    by_id: dict[int, tuple[Batch, list[TransactionRow]]] = {}
    parameters = {"batch_ids": str(list(batch_ids)), "first": min(batch_ids), "last": max(batch_ids)}
    for row in fetch_all(connection, _FIND_FINAL, parameters):
        _, transactions = by_id.setdefault(row[0], (Batch(*row[: batches.width]), []))
        if row[batches.width] is not None:  # Only an issued batch has transactions.
            transactions.append(TransactionRow(*row[batches.width :]))
    return by_id


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
    SELECT {batches.columns_as("b.")}, {TRANSACTION}
    FROM (SELECT id::bigint FROM jsonb_array_elements_text(%(batch_ids)s::jsonb) AS ids (id)) AS asked
    CROSS JOIN LATERAL (SELECT * FROM batches WHERE batches.id = asked.id AND {_IS_FINAL} LIMIT 1) b
    LEFT JOIN LATERAL (SELECT * FROM transactions
                       WHERE batch_id = b.id AND organization_id = b.organization_id
                         AND batch_id BETWEEN at_start(%(first)s) AND at_start(%(last)s) OFFSET 0) t ON true
    LEFT JOIN LATERAL (SELECT id, first_name, last_name FROM users WHERE users.id = t.user_id LIMIT 1) u ON true
    ORDER BY b.id, t.position
""".encode()


def final_among(connection: Connection, batch_ids: Sequence[int]) -> list[int]:
    """Return the ids of the final batches and reversals among these, whose ids come from the same sequence."""
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
