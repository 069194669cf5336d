"""Transactions as people look for them: by a part of an address or a label, by sender, amount or state.

No index serves these, because each would make every send dearer. So batches are read newest first, and of each only the
transactions that match; what the batch itself tells is checked before its transactions are read. A page looks further
than a program's (`LOOKED_AT_MAX`), since a person should find a match among many others in one step, but not without
end: each batch weighs its recipients, and where `FAR_MAX` is reached the page ends.
"""

from typing import Any, NamedTuple

from sqlalchemy import Connection, text

from app.pages.filters import CursorPosition, Filters
from app.pages.statements import (
    BATCH,
    COLUMNS_OF_TRANSACTION,
    FROM_BATCHES,
    INDEX_ORDER_ONLY,
    TRANSACTION,
    debited_condition,
)
from app.values.ids import POSITIONS

# One or two seconds of PostgreSQL's work, and more than 600,000 batches of one recipient. A batch whose transactions
# are read costs as much as ten or more recipients, a batch that is passed over as much as five.
FAR_MAX = 7_000_000
_BATCH_WEIGHS, _PASSED_OVER_WEIGHS = 10, 5

_NEWEST_FIRST = "issued_at DESC, id DESC"


def rows_found(filters: Filters, start: CursorPosition | None) -> str:
    """Return the statement of the matching transactions with their batches, newest first, as far as a page may look.

    The first batch beyond that gives a row without a position, whose `rows_read` is `:looked_at_max`.
    """
    rows = transactions_of_batch(filters, start)
    return f"""
        SELECT {BATCH}, {TRANSACTION}, CASE WHEN is_beyond THEN :looked_at_max ELSE 1 END AS rows_read
        FROM ({_batches(filters, start)}) b
        LEFT JOIN LATERAL ({rows} ORDER BY position DESC LIMIT :rows) t ON true
        WHERE is_beyond OR position IS NOT NULL ORDER BY {_NEWEST_FIRST}, position DESC LIMIT :rows
    """


class Totals(NamedTuple):
    """How many transactions match, the points debited for them, and those taken back again.

    `is_whole` is False if there is more to look at, further back.
    """

    transactions: int
    debited: int
    reversed: int
    is_whole: bool


def totals(connection: Connection, filters: Filters) -> Totals:
    """Return the totals of the matches, as far as the first page may look. Call it in a transaction of its own."""
    # The first batch beyond that is looked up first, and the sums stop there.
    statement = f"""
        WITH beyond AS MATERIALIZED (SELECT issued_at, id FROM ({_batches(filters, None)}) b WHERE is_beyond
                                     ORDER BY {_NEWEST_FIRST} LIMIT 1)
        SELECT count(*) AS transactions, NOT EXISTS (SELECT FROM beyond) AS is_whole,
               coalesce(sum(coalesce(own_amount, b.amount)) FILTER (WHERE debited), 0) AS debited,
               coalesce(sum(coalesce(own_amount, b.amount) - points_left), 0) AS reversed
        FROM (SELECT {FROM_BATCHES} FROM batches WHERE {_scope(filters)} AND {of_batch(filters)}
              AND (issued_at, id) > (coalesce((SELECT issued_at FROM beyond), '-infinity'),
                                     coalesce((SELECT id FROM beyond), 0))) b
        CROSS JOIN LATERAL ({transactions_of_batch(filters, None, is_bounded=False)} OFFSET 0) t
    """
    connection.execute(INDEX_ORDER_ONLY)
    row: Any = connection.execute(text(statement), filters.parameters()).one()
    return Totals(row.transactions, int(row.debited), int(row.reversed), is_whole=row.is_whole)


def _scope(filters: Filters) -> str:
    return " AND ".join([*filters.scope_conditions(moment="issued_at"), "issued_at IS NOT NULL"])


def _batches(filters: Filters, start: CursorPosition | None) -> str:
    """Return the statement of the issued batches, each with whether it may match, and whether it is too far back."""
    begin = "" if start is None else " AND (issued_at, id) <= (:start_moment, :start_batch_id)"
    return f"""
        SELECT *, coalesce(sum(CASE WHEN may_match THEN recipient_count + {_BATCH_WEIGHS}
                                   ELSE {_PASSED_OVER_WEIGHS} END) OVER (
                      ORDER BY {_NEWEST_FIRST} ROWS BETWEEN UNBOUNDED PRECEDING AND 1 PRECEDING), 0) >= {FAR_MAX}
                  AS is_beyond
        FROM (SELECT {FROM_BATCHES}, coalesce({of_batch(filters)}, false) AS may_match FROM batches
              WHERE {_scope(filters)}{begin} ORDER BY {_NEWEST_FIRST}) in_scope
    """


def of_batch(filters: Filters) -> str:
    """Return the condition on a batch, without which none of its transactions matches."""
    conditions = ["true", *filters.sender_conditions()]
    if filters.label_part is not None:
        conditions.append("(strpos(lower(label), :label_part) > 0 OR labels IS NOT NULL)")
    if filters.points is not None:
        conditions.append("(amount IS NULL OR amount = :points)")
    if filters.debit is not None:
        conditions.append("debited_count > 0" if filters.debit else "debited_count < recipient_count")
    return " AND ".join(conditions)


def transactions_of_batch(filters: Filters, start: CursorPosition | None, *, is_bounded: bool = True) -> str:
    """Return the statement of a batch's matching transactions."""
    conditions = ["batch_id = b.id", *filters.flag_conditions()]
    if is_bounded:
        conditions.append("b.may_match AND NOT b.is_beyond")
    if filters.debit is not None:
        conditions.append(debited_condition("b", is_debited=filters.debit))
    if start is not None:
        conditions.append(up_to_start())
    conditions += filters.part_conditions(label="coalesce(t.label, b.label)", amount="coalesce(t.amount, b.amount)")
    return f"SELECT {COLUMNS_OF_TRANSACTION} FROM transactions t WHERE {' AND '.join(conditions)}"


def up_to_start() -> str:
    """Return the condition on a transaction of the first batch of a page: it is not above where the page begins."""
    return f"position <= CASE b.id WHEN :start_batch_id THEN CAST(:start_position AS int) ELSE {POSITIONS - 1} END"
