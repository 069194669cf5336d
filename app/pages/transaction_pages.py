"""The pages of `GET /v1/transactions`: newest first, by the time of issue, then by id."""

from dataclasses import replace
from typing import Any

from sqlalchemy import Connection, text

from app.batches.batch import Batch, batches
from app.batches.transaction import TransactionRow
from app.pages import addresses, far
from app.pages.far import Totals
from app.pages.filters import LOOKED_AT_MAX, CursorPosition, Filters, Page
from app.pages.statements import (
    BATCH,
    COLUMNS_OF_TRANSACTION,
    FROM_BATCHES,
    INDEX_ORDER_ONLY,
    SHOWN_BATCH,
    TRANSACTION,
    batches_looked_at,
    debited_condition,
    read_page,
)
from app.postgres.database import row_with_id
from app.scope import Scope
from app.values.ids import POSITIONS, batch_and_position

Row = tuple[Batch, TransactionRow]

_NEWEST_FIRST = "issued_at DESC, id DESC, position DESC"


def page(
    connection: Connection, filters: Filters, *, start: CursorPosition | None, limit: int, is_far: bool = False
) -> Page[Row]:
    """Return the transactions of a page, each with its batch, as `read_page`.

    With `is_far`, look as far back as for a person (app/pages/far.py).
    """
    of_user = with_addresses_of_user(connection, filters)
    if of_user is None:
        return Page([], None)
    is_by_time, statement = _is_by_time(of_user), _statement(of_user, start, is_far=is_far)

    def next_start(row: Any) -> CursorPosition:
        return CursorPosition(row.issued_at if is_by_time else None, row.transaction_id)

    return read_page(connection, statement, of_user, start, limit=limit, to_row=_row, next_start=next_start)


def with_addresses_of_user(connection: Connection, filters: Filters) -> Filters | None:
    """Return the filters with the addresses, of now and before, of the user that they name; None: the mode has no such.

    A user has few, so the index of addresses finds the user's transactions.
    """
    if filters.user_id is None or filters.email_key is not None:
        return filters
    keys = list(connection.execute(_ADDRESSES_OF_USER, filters.parameters()).scalars())
    return replace(filters, email_key=keys[0], former_keys=keys[1:]) if keys else None


_ADDRESSES_OF_USER = text("""
    SELECT k.email_key FROM users u
    CROSS JOIN LATERAL (
        SELECT coalesce(u.email_key, u.email) AS email_key, true AS is_present
        UNION ALL SELECT email_key, false FROM former_addresses WHERE user_id = u.id
    ) k
    WHERE u.id = :user_id AND u.sandbox_of IS NOT DISTINCT FROM CASE WHEN :sandbox THEN :organization_id END
    GROUP BY k.email_key ORDER BY bool_or(k.is_present) DESC, k.email_key
""")


def get(connection: Connection, transaction_id: int, scope: Scope) -> Row:
    """Return a transaction of an organization and mode, with its batch.

    Raises:
        NotFound: they have no such transaction.
    """
    batch_id, position = batch_and_position(transaction_id)
    parameters = {"id": transaction_id, **scope._asdict(), "batch_id": batch_id, "position": position}
    return _row(row_with_id(connection, _GET, parameters, "transaction"))


def _row(row: Any) -> Row:
    width = batches.width
    return Batch(*row[:width]), TransactionRow(*row[width : width + len(TransactionRow._fields)])


def _statement(filters: Filters, start: CursorPosition | None, *, is_far: bool) -> str:
    """Return the statement of a page: the source in the list's order, filtered, with users.

    PostgreSQL reads the source only as far as the page needs. The statement returns the source's last row even if it
    does not match: the next page begins there.
    """
    source, order, conditions = _source(filters, start, is_far=is_far)
    return f"""{_SHOWN} FROM (
        SELECT * FROM ({source}) looked_at WHERE rows_read = :looked_at_max OR ({" AND ".join(conditions)})
        ORDER BY {order} LIMIT :rows
    ) page {_USER} ORDER BY rows_read"""


def _is_by_time(filters: Filters) -> bool:
    return filters.email_key is None and filters.reference is None


def _source(filters: Filters, start: CursorPosition | None, *, is_far: bool) -> tuple[str, str, list[str]]:
    """Return the statement of the rows that a page looks at, their order, and which of them match."""
    if filters.reference is not None:
        source, order = addresses.rows_of_reference(filters, start), addresses.REFERENCES_NEWEST_FIRST
        conditions = addresses.reference_conditions(filters)
    elif filters.email_key is not None:
        source, order = addresses.rows_of_address(filters, start), addresses.NEWEST_FIRST
        conditions = addresses.address_conditions(filters, moment="issued_at")
    else:
        source = far.rows_found(filters, start) if is_far else _rows_of_batches(filters, start)
        order, conditions = _NEWEST_FIRST, ["position IS NOT NULL"]
    return (
        source,
        order,
        [*conditions, *filters.flag_conditions(), *filters.sender_conditions(), *filters.part_conditions()],
    )


def totals(connection: Connection, filters: Filters, first: Page[Row], *, limit: int) -> Totals:
    """Return the totals of what a person finds with these filters. Call it in a transaction of its own.

    `first` is the first page. If it is not full, it has looked at everything.
    """
    if len(first.rows) < limit:
        debited = [(row.amount or batch.amount or 0, row) for batch, row in first.rows if row.debited]
        taken_back = sum(amount - row.points_left for amount, row in debited if row.points_left is not None)
        return Totals(len(first.rows), sum(amount for amount, _ in debited), taken_back, is_whole=first.next is None)
    if _is_by_time(filters):
        return far.totals(connection, filters)
    source, _, conditions = _source(filters, None, is_far=True)
    matches = " AND ".join(conditions)
    statement = f"""
        SELECT count(*) FILTER (WHERE {matches}) AS transactions, count(*) < :looked_at_max AS is_whole,
               coalesce(sum(coalesce(own_amount, amount)) FILTER (WHERE debited AND {matches}), 0) AS debited,
               coalesce(sum(coalesce(own_amount, amount) - points_left) FILTER (WHERE {matches}), 0) AS reversed
        FROM ({source}) looked_at
    """
    connection.execute(INDEX_ORDER_ONLY)
    row: Any = connection.execute(text(statement), filters.parameters() | {"looked_at_max": LOOKED_AT_MAX}).one()
    return Totals(row.transactions, int(row.debited), int(row.reversed), is_whole=row.is_whole)


def _rows_of_batches(filters: Filters, start: CursorPosition | None) -> str:
    """Return the statement of an organization's transactions, batch by batch, newest first, numbered from 1.

    A batch without a row that is debited as wanted gives a row without a position, which counts as looked at.
    """
    begin = "" if start is None else "(issued_at, id) <= (:start_moment, :start_batch_id)"
    rows = ["batch_id = b.id"]
    if start is not None:
        rows.append(far.up_to_start())
    if filters.debit is False or filters.debit or filters.credit:
        rows.append(debited_condition("b", is_debited=filters.debit is not False))
    # PostgreSQL reads all matching rows of a batch before it sorts them, so the limit is what the page can need.
    at_most = ":rows" if filters.credit is None and filters.state is None else ":looked_at_max"
    return f"""
        SELECT {BATCH}, {TRANSACTION}, row_number() OVER (ORDER BY {_NEWEST_FIRST}) AS rows_read
        FROM ({batches_looked_at(filters, moment="issued_at", begin=begin)}) b
        LEFT JOIN LATERAL (SELECT {COLUMNS_OF_TRANSACTION} FROM transactions WHERE {" AND ".join(rows)}
                           ORDER BY position DESC LIMIT {at_most}) t ON true
        ORDER BY {_NEWEST_FIRST} LIMIT :looked_at_max
    """


_SHOWN = f"""
    SELECT {SHOWN_BATCH},
           transaction_id(id, coalesce(position, {POSITIONS - 1})) AS transaction_id, email, balance, debited, credited,
           claimed_at IS NOT NULL, own_amount, own_label, reference, points_left, own_held_until,
           returned_at IS NOT NULL, recipient_id, first_name, last_name, rows_read
"""
_USER = """
    LEFT JOIN LATERAL (SELECT id AS recipient_id, first_name, last_name FROM users
                       WHERE id = page.user_id LIMIT 1) u ON true
"""
_GET = text(f"""{_SHOWN}
    FROM (SELECT {FROM_BATCHES}, {TRANSACTION}, 1 AS rows_read FROM batches b
          CROSS JOIN LATERAL (SELECT {COLUMNS_OF_TRANSACTION} FROM transactions
                              WHERE batch_id = b.id AND position = :position) t
          WHERE id = :batch_id AND organization_id = :organization_id AND sandbox = :sandbox) page {_USER}
""")
