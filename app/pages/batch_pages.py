"""The pages of `GET /v1/batches`: newest first, by the time of acceptance, then by id."""

from typing import Any, NamedTuple

from sqlalchemy import Connection, text

from app.batches.batch import Batch, batches
from app.pages.addresses import NEWEST_FIRST, address_conditions, rows_of_address
from app.pages.filters import FAR_BATCHES_MAX, LOOKED_AT_MAX, CursorPosition, Filters, Page
from app.pages.statements import (
    INDEX_ORDER_ONLY,
    SHOWN_BATCH,
    batches_looked_at,
    by_time,
    debited_condition,
    read_page,
)
from app.values.ids import POSITIONS

LABEL_OF_ROW = "strpos(lower(coalesce(own_label, label)), :label_part) > 0"

_NEWEST_FIRST = "created_at DESC, id DESC"


def page(
    connection: Connection, filters: Filters, *, start: CursorPosition | None, limit: int, is_far: bool = False
) -> Page[Batch]:
    """Return the batches of a page, as `read_page`; with `is_far`, look as far back as for a person."""
    is_by_time = filters.email_key is None
    return read_page(
        connection,
        (_statement_by_time if is_by_time else _statement_of_address)(filters, start),
        filters,
        start,
        limit=limit,
        to_row=lambda row: Batch(*row[: batches.width]),
        next_start=by_time if is_by_time else _start_in_address,
        looked_at_max=FAR_BATCHES_MAX if is_far and is_by_time else LOOKED_AT_MAX,
    )


class Totals(NamedTuple):
    """How many batches match, and the points issued by them; not whole if there is more to look at, further back."""

    batches: int
    points: int
    is_whole: bool


def totals(connection: Connection, filters: Filters, first: Page[Batch], *, limit: int) -> Totals:
    """Return the totals of the matches by the time, as far as the first page for a person may look.

    `first` is that page. If it is not full, it has looked at everything.
    """
    if len(first.rows) < limit:
        points = sum(batch.debited_amount or 0 for batch in first.rows)
        return Totals(len(first.rows), points, is_whole=first.next is None)
    conditions = " AND ".join([flags(filters), *filters.batch_conditions()])
    statement = f"""
        SELECT count(*) FILTER (WHERE matches) AS batches, bool_and(rows_read < :looked_at_max) AS is_whole,
               coalesce(sum(debited_amount) FILTER (WHERE matches), 0) AS points
        FROM (SELECT rows_read, debited_amount, CASE WHEN rows_read < :looked_at_max THEN {conditions} END AS matches
              FROM ({_weighed(filters)}) looked_at OFFSET 0) found
    """
    connection.execute(INDEX_ORDER_ONLY)
    row: Any = connection.execute(text(statement), filters.parameters() | {"looked_at_max": FAR_BATCHES_MAX}).one()
    return Totals(row.batches, int(row.points), is_whole=row.is_whole)


def _statement_by_time(filters: Filters, start: CursorPosition | None) -> str:
    """Return the statement of a page of an organization's batches."""
    begin = "" if start is None else "(created_at, id) <= (:start_moment, :start_id)"
    conditions = " AND ".join([flags(filters), *filters.batch_conditions()])
    return f"""
        SELECT {SHOWN_BATCH}, rows_read FROM ({_weighed(filters, begin)}) looked_at
        WHERE rows_read >= :looked_at_max OR ({conditions}) ORDER BY {_NEWEST_FIRST} LIMIT :rows
    """


def _weighed(filters: Filters, begin: str = "") -> str:
    """Return the statement of the batches that a page looks at, numbered by the rows looked at.

    A batch counts as one row. With a filter on credits it counts as all its transactions, and with one on labels as all
    labels of its items: PostgreSQL may have to read all of them.
    """
    weight = "1" if filters.label_part is None else "CASE WHEN has_labels THEN recipient_count ELSE 1 END"
    weight = weight if filters.credit is None else "recipient_count"
    return f"""
        SELECT *, 1 + sum({weight}) OVER (ORDER BY {_NEWEST_FIRST} ROWS UNBOUNDED PRECEDING) - {weight} AS rows_read
        FROM ({batches_looked_at(filters, begin=begin)}) b ORDER BY {_NEWEST_FIRST}
    """


def flags(filters: Filters) -> str:
    """Return the condition on a batch: any of its transactions has all the flags of the filters.

    Only the rows tell whether they were credited, since held points are claimed later. The LIMIT keeps PostgreSQL from
    reading the whole table at once for this.
    """
    if filters.credit is None:
        return {None: "true", True: "debited_count > 0", False: "debited_count < recipient_count"}[filters.debit]
    if filters.debit is False:  # An undebited transaction is never credited.
        return "debited_count < recipient_count"
    among_debited = debited_condition("looked_at", is_debited=True)
    has_transaction = f"""
        coalesce((SELECT true FROM transactions WHERE batch_id = looked_at.id AND {among_debited}
                  AND credited = :credited ORDER BY position LIMIT 1), false)
    """
    if filters.credit or filters.debit:
        return has_transaction
    return f"(debited_count < recipient_count OR {has_transaction})"


def _statement_of_address(filters: Filters, start: CursorPosition | None) -> str:
    """Return the statement of a page of the batches that have a transaction of the address.

    A batch may have several such rows (items with references, or allowed repeats): only the first counts.
    """
    conditions = address_conditions(filters, moment="created_at")
    conditions += [*filters.flag_conditions(), *filters.batch_conditions(label=LABEL_OF_ROW)]
    conditions += filters.equal("idempotency_key")
    return f"""
        SELECT {SHOWN_BATCH}, transaction_id, rows_read, above FROM (
            SELECT *, lag(id) OVER (ORDER BY {NEWEST_FIRST} ROWS UNBOUNDED PRECEDING) AS above
            FROM ({rows_of_address(filters, start)}) looked_at
            WHERE rows_read = :looked_at_max OR ({" AND ".join(conditions)})
        ) neighbours WHERE rows_read = :looked_at_max OR above IS DISTINCT FROM id ORDER BY {NEWEST_FIRST} LIMIT :rows
    """


def _start_in_address(row: Any) -> CursorPosition:
    """Return the position of the next page: below this row's batch, if the page already shows that batch."""
    if row.above == row.id:
        return CursorPosition(None, row.id * POSITIONS - 1)
    return CursorPosition(None, row.transaction_id)
