"""Reversals: reading them back, what callers see of them, and deleting idempotency keys after their time."""

from collections.abc import Sequence
from datetime import datetime
from typing import Annotated, Any, NamedTuple

from sqlalchemy import Connection, text

from app.noun import Id, Noun, Points, Shown, says, says_one_of
from app.postgres.database import digest, fetch_all, row_with_id
from app.reversals.request import Recoverable
from app.values import payloads
from app.values.ids import POSITIONS

STATUSES = QUEUED, DONE, REFUSED = "queued", "done", "refused"


# What a reversal and its replay answer, as far as neither the points nor the request tell it: `digest` binds these.
# `codes` stands for those of its entries.
DIGESTED = (
    *("id", "organization_id", "sandbox", "api_key_id", "member_id", "batch_id", "amount", "atomic", "reason"),
    *("is_return", "idempotency_key", "idempotency_hash", "created_at", "refusal", "done_at", "codes"),
)
# The codes of the entries of a reversal `r`.
CODES = """(SELECT string_agg(position || code, ',' ORDER BY position) FROM reversal_entries
            WHERE reversal_id = r.id AND organization_id = r.organization_id AND code IS NOT NULL)"""


class ReversalRow(NamedTuple):
    """A reversal without its entries; its fields are columns of `reversals`.

    `is_return`: the service made it, of points held for too long.
    """

    id: int
    organization_id: int
    status: str
    api_key_id: int | None
    member_id: int | None
    is_return: bool
    batch_id: int | None
    reason: str
    idempotency_key: str | None
    created_at: datetime
    refusal: str | None
    done_at: datetime | None
    reversed_amount: int | None
    current_balance: int | None


class EntryRow(NamedTuple):
    """What a reversal took from one transaction."""

    transaction_id: Annotated[Id, says("The id of the transaction.", 131_072), Shown(name="id")]
    email: Annotated[str, says("The address as it was sent, trimmed.", "ada@example.com")]
    amount: Annotated[Points, says("The amount of the transaction.", 50)]
    reversed: Annotated[Points, says("Points that this reversal took.", 50)]
    code: Annotated[
        str | None,
        says_one_of(
            ("not_debited", "already_reversed", "more_than_left"),
            "Why nothing could be taken, as a stable word; null if points were taken.",
            None,
        ),
    ]


reversed_transactions = Noun(EntryRow, "transaction", "transactions", schema="ReversedTransaction")
COLUMNS = ", ".join(ReversalRow._fields)


def find(connection: Connection, reversal_id: int, *, organization_id: int, sandbox: bool) -> ReversalRow | None:
    """Return one reversal of an organization and mode; None if they have no such reversal."""
    parameters = {"id": reversal_id, "organization_id": organization_id, "sandbox": sandbox}
    row = connection.execute(_FIND, parameters).one_or_none()
    return None if row is None else ReversalRow._make(row)


def get(connection: Connection, reversal_id: int, *, organization_id: int, sandbox: bool) -> ReversalRow:
    """Return one reversal of an organization and mode.

    Raises:
        NotFound: they have no such reversal.
    """
    parameters = {"id": reversal_id, "organization_id": organization_id, "sandbox": sandbox}
    return ReversalRow._make(row_with_id(connection, _FIND, parameters, "reversal"))


_FIND = text(
    f"SELECT {COLUMNS} FROM reversals WHERE id = :id AND organization_id = :organization_id AND sandbox = :sandbox"
)


def of_batch(
    connection: Connection, batch_id: int, *, organization_id: int, sandbox: bool, at_most: int
) -> list[ReversalRow]:
    """Return up to `at_most` reversals that ask for a batch or for some of its transactions, newest first."""
    parameters = {"batch_ids": [batch_id], "organization_id": organization_id, "sandbox": sandbox, "at_most": at_most}
    return [ReversalRow._make(row) for row in connection.execute(_OF_BATCH, parameters)]


_OF_BATCH = text(f"""
    SELECT {COLUMNS} FROM reversals
    WHERE reversal_batches(batch_id, transaction_ids) @> CAST(:batch_ids AS bigint[])
      AND organization_id = :organization_id AND sandbox = :sandbox
    ORDER BY id DESC LIMIT :at_most
""")


def entries_of(connection: Connection, reversal_id: int, *, organization_id: int) -> list[EntryRow]:
    """Return what a reversal took from each of its transactions, in request order."""
    parameters = {"reversal_id": reversal_id, "organization_id": organization_id}
    rows = fetch_all(connection, _ENTRIES, parameters, binary=True)
    return list(map(EntryRow._make, rows))


# LIMIT 1 makes PostgreSQL find each transaction by its batch and position. Where nearly all batches have one recipient,
# it would read the whole batch for each.
_ENTRIES = b"""
    SELECT transaction_id(e.batch_id, e.transaction_position), t.email, coalesce(t.amount, b.amount), e.reversed, e.code
    FROM reversal_entries e
    CROSS JOIN LATERAL (SELECT email, amount FROM transactions
                        WHERE batch_id = e.batch_id AND position = e.transaction_position
                          AND organization_id = e.organization_id LIMIT 1) t
    JOIN batches b ON b.id = e.batch_id AND b.organization_id = e.organization_id
    WHERE e.reversal_id = %(reversal_id)s AND e.organization_id = %(organization_id)s
    ORDER BY e.position
"""


def forget_idempotency_keys(connection: Connection, *, older_than_days: int, at_most: int) -> int:
    """Delete the idempotency keys of up to `at_most` of the oldest reversals past their time; return how many."""
    parameters = {"older_than_days": older_than_days, "at_most": at_most}
    return connection.execute(_FORGET_IDEMPOTENCY_KEYS, parameters).rowcount


# As for batches, a subquery reads the clock once.
_FORGET_IDEMPOTENCY_KEYS = text(f"""
    UPDATE reversals r
    SET idempotency_key = NULL, idempotency_hash = NULL,
        digest = {digest(DIGESTED, "r", idempotency_key="NULL", idempotency_hash="NULL", codes=CODES)}
    WHERE id = ANY(ARRAY(SELECT id FROM reversals
                         WHERE idempotency_key IS NOT NULL AND status <> 'queued'
                           AND created_at < (SELECT clock_timestamp() - make_interval(days => :older_than_days))
                         ORDER BY created_at LIMIT :at_most))
""")


def absent(connection: Connection, transaction_ids: Sequence[int], *, organization_id: int, sandbox: bool) -> set[int]:
    """Return the ids that belong to no transaction of the organization and mode."""
    parameters = {"ids": list(transaction_ids), "organization_id": organization_id, "sandbox": sandbox}
    return set(connection.execute(_ABSENT, parameters).scalars())


_ABSENT = text(f"""
    SELECT asked.id FROM unnest(CAST(:ids AS bigint[])) AS asked (id)
    LEFT JOIN LATERAL (SELECT sandbox FROM transactions
                       WHERE batch_id = asked.id / {POSITIONS} AND position = asked.id % {POSITIONS}
                         AND organization_id = :organization_id LIMIT 1) t ON true
    WHERE t.sandbox IS DISTINCT FROM CAST(:sandbox AS boolean)
""")


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
    own = {"reversal_id": reversal.id, "final": reversal.status != QUEUED, "amount": reversal.reversed_amount}
    return payloads.listed_payload(payloads.REVERSAL, reversal, own, **more)


def recoverable_additions(found: Recoverable) -> dict[str, int]:
    """The additional data of verify, for programs: the points that would come back, and the transactions by state."""
    names = ("recoverable", "transactions", "held", "credited", "already_reversed", "not_debited")
    return {name: getattr(found, name) for name in names}
