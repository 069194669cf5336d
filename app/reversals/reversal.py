"""Reversals: reading them back, what callers see of them, and deleting idempotency keys after their time."""

from collections.abc import Mapping, Sequence
from datetime import datetime
from typing import Annotated, Any, NamedTuple

from pydantic import BaseModel
from sqlalchemy import Connection, text

from app.errors import BalanceTooLarge, BatchNotIssued, OrganizationDisabled
from app.noun import Noun
from app.noun_fields import Id, Points, Shown, says, says_one_of
from app.postgres.database import digest, fetch_all
from app.reversals.request import OtherSum, Recoverable
from app.scope import Scope
from app.values.ids import POSITIONS

STATUSES = QUEUED, DONE, REFUSED = "queued", "done", "refused"


# What a reversal and its replay answer, as far as neither the points nor the request tell it: `digest` binds these.
# `codes` stands for those of its entries.
DIGESTED = (
    *("id", "organization_id", "sandbox", "api_key_id", "member_id", "batch_id", "amount", "atomic", "reason"),
    *("expected", "is_return", "idempotency_key", "idempotency_hash", "created_at", "refusal", "done_at", "codes"),
)
# The codes of the entries of a reversal `r`.
CODES = """(SELECT string_agg(position || code, ',' ORDER BY position) FROM reversal_entries
            WHERE reversal_id = r.id AND organization_id = r.organization_id AND code IS NOT NULL)"""


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


class Reversal(NamedTuple):
    """A reversal as it is now."""

    id: Annotated[Id, says("The id of the reversal.", 2), Shown(name="reversal_id")]
    organization_id: int
    status: Annotated[str, says_one_of(STATUSES, "Refused: nothing was taken, and `refusal` says why.", "done")]
    refusal: Annotated[
        str | None,
        says_one_of(
            (OrganizationDisabled.code, BatchNotIssued.code, OtherSum.code, BalanceTooLarge.code),
            "Why it was refused, as a stable word; null unless it was refused.",
            None,
        ),
    ]
    reason: Annotated[str, says("The reason that it was sent with.", "The wrong list")]
    batch_id: Annotated[Id | None, says("The batch to take back; null if the request named transactions.", 1)]
    idempotency_key: Annotated[
        str | None,
        says("The `Idempotency-Key` that it was sent with; null if none, and once it is no longer kept.", None),
    ]
    api_key_id: Annotated[Id | None, says("The id of the key that sent it.", 1)]
    member_id: int | None
    is_return: bool  # The service made it, of points held for too long.
    created_at: Annotated[
        datetime, says("When it was accepted. ISO 8601 in UTC, six decimals.", "2026-01-31T09:40:00.471006Z")
    ]
    done_at: Annotated[
        datetime | None,
        says("When it was done, ISO 8601 in UTC, six decimals; null until then.", "2026-01-31T09:40:00.482913Z"),
    ]
    reversed_amount: Annotated[
        Points | None, says("The sum of the points taken; null until done.", 100), Shown(name="amount")
    ]
    current_balance: Annotated[Points | None, says("The balance right after it; null until done.", 1_000)]
    # Who reads the row adds this, if an answer has it.
    transactions: Annotated[
        Sequence[Mapping[str, Any]] | None,
        says("One per transaction asked for, in order; null until done."),
        Shown(before="reversed_amount", described=list[reversed_transactions.model] | None),
    ] = None

    @property
    def is_final(
        self,
    ) -> Annotated[
        bool,
        says("Its status will not change. Rely on this, as more statuses may be added.", True),
        Shown(name="final", before="refusal"),
    ]:
        return self.status != QUEUED


reversals = Noun(Reversal, "reversal", "reversals")
listed_reversals = Noun(
    Reversal,
    "reversal",
    "reversals",
    schema="ListedReversal",
    about="A reversal as it is now, without its transactions.",
    without=("transactions",),
)


def of_batches(connection: Connection, batch_ids: Sequence[int], scope: Scope, *, at_most: int) -> list[Reversal]:
    """Return up to `at_most` reversals that ask for these batches or for transactions of them, newest first."""
    parameters = {"batch_ids": list(batch_ids), **scope._asdict(), "at_most": at_most}
    return [Reversal(*row) for row in connection.execute(_OF_BATCHES, parameters)]


_OF_BATCHES = text(f"""
    SELECT {reversals.columns} FROM reversals
    WHERE reversal_batches(batch_id, transaction_ids) && CAST(:batch_ids AS bigint[])
      AND organization_id = :organization_id AND sandbox = :sandbox
    ORDER BY id DESC LIMIT :at_most
""")


class Asked(NamedTuple):
    """What a reversal asks for: the batches of its transactions, how many are chosen, and how much from each.

    None: all transactions of the batch, and all that is left.
    """

    batch_ids: Sequence[int]
    chosen: int | None
    amount: int | None


def asked_of(connection: Connection, reversal_ids: Sequence[int], *, organization_id: int) -> dict[int, Asked]:
    """Return what each of these reversals asks for."""
    rows = connection.execute(_ASKED, {"ids": list(reversal_ids), "organization_id": organization_id})
    return {reversal_id: Asked(*asked) for reversal_id, *asked in rows}


_ASKED = text("""
    SELECT id, reversal_batches(batch_id, transaction_ids), cardinality(transaction_ids), amount FROM reversals
    WHERE id = ANY(:ids) AND organization_id = :organization_id
""")


def addresses_asked(connection: Connection, reversal_id: int, *, organization_id: int, at_most: int) -> list[str]:
    """Return the addresses of the first transactions that a reversal names, in request order."""
    parameters = {"id": reversal_id, "organization_id": organization_id, "at_most": at_most}
    return list(connection.execute(_ADDRESSES_ASKED, parameters).scalars())


_ADDRESSES_ASKED = text(f"""
    SELECT t.email FROM reversals r
    CROSS JOIN LATERAL unnest(r.transaction_ids[: CAST(:at_most AS int)]) WITH ORDINALITY AS ids (id, place)
    CROSS JOIN LATERAL (SELECT email FROM transactions
                        WHERE batch_id = ids.id / {POSITIONS} AND position = ids.id % {POSITIONS}
                          AND organization_id = r.organization_id LIMIT 1) t
    WHERE r.id = :id AND r.organization_id = :organization_id ORDER BY ids.place
""")


def taken_back(batch: str) -> str:
    """Return the SQL for the points of a batch that callers have taken back; `batch` is the SQL of its id."""
    return f"""
        (SELECT CAST(coalesce(sum(CASE WHEN r.batch_id IS NOT NULL THEN r.reversed_amount
                                       ELSE (SELECT sum(e.reversed) FROM reversal_entries e
                                             WHERE e.reversal_id = r.id AND e.organization_id = r.organization_id
                                               AND e.batch_id = {batch}) END), 0) AS bigint)
         FROM reversals r
         WHERE reversal_batches(r.batch_id, r.transaction_ids) @> ARRAY[{batch}] AND r.status = 'done'
           AND NOT r.is_return)
    """


def taken_back_of(connection: Connection, batch_ids: Sequence[int]) -> dict[int, int]:
    """Return the points that callers have taken back of each of these batches."""
    rows = connection.execute(_TAKEN_BACK, {"batch_ids": list(batch_ids)})
    return {batch_id: points for batch_id, points in rows}  # noqa: C416  # The rows have no type to be a dict of.


_TAKEN_BACK = text(f"SELECT id, {taken_back('ids.id')} FROM unnest(CAST(:batch_ids AS bigint[])) AS ids (id)")


def entries_of(connection: Connection, reversal_id: int, *, organization_id: int) -> list[EntryRow]:
    """Return what a reversal took from each of its transactions, in request order."""
    parameters = {"reversal_id": reversal_id, "organization_id": organization_id}
    rows = fetch_all(connection, _ENTRIES, parameters, binary=True)
    return list(map(EntryRow._make, rows))


# LIMIT 1 makes PostgreSQL find each transaction by its batch and position. Where nearly all batches have a single
# recipient, it would read the whole batch for each.
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


def absent(
    connection: Connection, transaction_ids: Sequence[int], scope: Scope, *, sent_by: int | None = None
) -> set[int]:
    """Return the ids that belong to no transaction of the organization and mode, or that its key has not sent."""
    parameters = {"ids": list(transaction_ids), **scope._asdict(), "sent_by": sent_by}
    return set(connection.execute(_ABSENT, parameters).scalars())


_ABSENT = text(f"""
    SELECT ids.id FROM unnest(CAST(:ids AS bigint[])) AS ids (id)
    LEFT JOIN LATERAL (SELECT sandbox FROM transactions
                       WHERE batch_id = ids.id / {POSITIONS} AND position = ids.id % {POSITIONS}
                         AND organization_id = :organization_id LIMIT 1) t ON true
    WHERE t.sandbox IS DISTINCT FROM CAST(:sandbox AS boolean)
       OR CAST(:sent_by AS bigint) IS NOT NULL
          AND NOT EXISTS (SELECT FROM batches WHERE batches.id = ids.id / {POSITIONS} AND api_key_id = :sent_by)
""")


class ReverseResult(BaseModel):
    """Points taken back, in the order of the request, or of the batch."""

    reversal_id: Id = says("The id of the reversal: `GET /v1/reversals/{id}` reads it.", 2)
    transactions: list[reversed_transactions.model] = says(  # type: ignore[name-defined]
        "One per transaction asked for, in order."
    )
    amount: Points = says("The sum of the points taken.", 100)
    current_balance: Points = says("The balance right after this reversal.", 1_000)


def reverse_result(reversal: Reversal, entries: Sequence[EntryRow]) -> dict[str, Any]:
    """Reverse result: what was taken from each transaction, the sum, and the balance right after it."""
    return {
        "reversal_id": reversal.id,
        "transactions": list(map(reversed_transactions.payload, entries)),
        "amount": reversal.reversed_amount,
        "current_balance": reversal.current_balance,
    }


def whole_reversal_payload(reversal: Reversal, entries: Sequence[EntryRow]) -> dict[str, Any]:
    """A reversal as it is now; the keys of the result are null until it is done."""
    bodies = None if reversal.reversed_amount is None else list(map(reversed_transactions.payload, entries))
    return reversals.payload(reversal._replace(transactions=bodies))


def recoverable_additions(verdict: Recoverable) -> dict[str, int]:
    """The additional data of verify, for programs: the points that would come back, and the transactions by state."""
    names = ("recoverable", "transactions", "held", "credited", "already_reversed", "not_debited", "queued")
    return {name: getattr(verdict, name) for name in names}
