"""The parts of SQL that the lists share, and how a page's statement is run."""

import re
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Generic

from sqlalchemy import Connection, text

from app.batches.batch import Batch, approval_of, batches, sender_of
from app.noun import Noun, NounRow
from app.pages.filters import FAR_BATCHES_MAX, LOOKED_AT_MAX, CursorPosition, Filters, Page, Row
from app.values.ids import POSITIONS

# Where PostgreSQL expects few rows, it collects and sorts them all, and its guess may be wrong. With these settings it
# reads an index in order and stops when the page is full.
INDEX_ORDER_ONLY = text("""
    SELECT set_config(name, 'off', true)
    FROM unnest(ARRAY['enable_bitmapscan', 'enable_seqscan', 'enable_sort', 'jit']) AS name
""")


def by_id(row: Any) -> CursorPosition:
    """Return where a page begins, in a list by ids."""
    return CursorPosition(None, row.id)


def by_time(row: Any) -> CursorPosition:
    """Return where a page begins, in a list by `created_at`, then by ids."""
    return CursorPosition(row.created_at, row.id)


def read_page(
    connection: Connection,
    statement: str,
    filters: Filters,
    start: CursorPosition | None,
    *,
    limit: int,
    to_row: Callable[[Any], Row],
    next_start: Callable[[Any], CursorPosition] = by_time,
    looked_at_max: int = LOOKED_AT_MAX,
) -> Page[Row]:
    """Run a page's statement and return the page. The planner's settings stay changed until the transaction ends.

    The statement's rows are in order, each with its number `rows_read`, counted from 1.

    Args:
        start: where the page begins, the `next` of the previous page; None for the first page.
        limit: the most rows to return. A page may have fewer, even none, and still have a `next`.
    """
    if filters.contradict_themselves:
        return Page([], None)
    parameters = filters.parameters() | {"rows": limit + 1, "looked_at_max": looked_at_max}
    parameters |= {} if start is None else start.parameters()
    connection.execute(INDEX_ORDER_ONLY)
    rows: list[Row] = []
    for row in connection.execute(text(statement), parameters):
        # The next page begins at the first row too many, or at the last row that this page may look at.
        if len(rows) == limit or row.rows_read >= looked_at_max:
            return Page(rows, next_start(row))
        rows.append(to_row(row))
    return Page(rows, None)


@dataclass(frozen=True)
class Listing(Generic[NounRow]):
    """A list that is read from a single table, newest first: by `created_at` and id, or by id. It is called for a page.

    Args:
        columns: those to read of the table, if they are not the noun's.
        scope: the conditions that an index serves.
        matches: the conditions on rows that are read one by one: a page with few matches ends early.
        around: a statement around the rows of a page, which stand for `{}`.
    """

    noun: Noun[NounRow]
    columns: str = ""
    scope: Callable[[Filters], list[str]] = Filters.scope_conditions
    matches: Callable[[Filters], list[str]] = lambda _: []
    is_by_time: bool = True
    around: str = "{}"

    def __call__(
        self,
        connection: Connection,
        filters: Filters,
        *,
        start: CursorPosition | None,
        limit: int,
        is_far: bool = False,
    ) -> Page[NounRow]:
        """Return a page, as `read_page`; with `is_far`, look as far back as for a person."""
        return read_page(
            connection,
            self.statement(filters, start),
            filters,
            start,
            limit=limit,
            to_row=self._row,
            next_start=by_time if self.is_by_time else by_id,
            looked_at_max=FAR_BATCHES_MAX if is_far else LOOKED_AT_MAX,
        )

    def statement(self, filters: Filters, start: CursorPosition | None) -> str:
        """Return the statement of a page that begins there."""
        order, begin = "id DESC", "id <= :start_id"
        if self.is_by_time:
            order, begin = "created_at DESC, id DESC", "(created_at, id) <= (:start_moment, :start_id)"
        columns = self.columns or self.noun.columns
        scope = [*self.scope(filters), *([] if start is None else [begin])]
        return self.around.format(f"""
            SELECT * FROM (SELECT {columns}, row_number() OVER (ORDER BY {order}) AS rows_read FROM {self.noun.table}
                           WHERE {" AND ".join(scope or ["true"])} ORDER BY {order} LIMIT :looked_at_max) looked_at
            WHERE rows_read >= :looked_at_max OR ({" AND ".join(self.matches(filters) or ["true"])})
            ORDER BY {order} LIMIT :rows
        """)

    def _row(self, row: Any) -> NounRow:
        return self.noun.row(*row[: self.noun.width])


# What is read of the table of batches, the same by its names, and all fields of `Batch`.
FROM_BATCHES = ", ".join(
    [
        *batches.of_table,
        f"{approval_of()} AS approval",
        "payable_totals IS NULL AS pays_the_first",
        "labels IS NOT NULL AS has_labels",
    ]
)
BATCH = ", ".join([*batches.of_table, "approval"])
# Read of the rows of the page only.
_BESIDE = {
    "organization_created_at": "(SELECT created_at FROM organizations WHERE id = :organization_id)",
    "sender": sender_of("member_id"),
}
SHOWN_BATCH = ", ".join(
    f"{_BESIDE[name]} AS {name}" if name in _BESIDE else name for name in Batch._fields[: batches.width]
)

# The columns of a transaction. Batches have an amount, a label and an end too, hence the prefix `own_`.
TRANSACTION = (
    "position, email, email_key, balance, debited, credited, claimed_at, own_amount, own_label, reference,"
    " points_left, own_held_until, returned_at, user_id"
)
COLUMNS_OF_TRANSACTION = re.sub(r"own_(\w+)", r"\1 AS own_\1", TRANSACTION)


def debited_condition(batch: str, *, is_debited: bool) -> str:
    """Return the condition that a transaction of a batch is debited, or is not.

    The balance pays the first recipients of a batch, so it is a range of positions, unless one was erased before.
    """
    flag, than, whole = ("debited", "<", POSITIONS) if is_debited else ("NOT debited", ">=", 0)
    return f"{flag} AND position {than} CASE WHEN {batch}.pays_the_first THEN {batch}.debited_count ELSE {whole} END"


def batches_looked_at(filters: Filters, *, moment: str = "created_at", begin: str = "") -> str:
    """Return the statement of the batches of a page that an index serves, newest first.

    A single batch needs no order: with an order, PostgreSQL would read all batches to find it.
    """
    is_one = filters.batch_id is not None or filters.idempotency_key is not None
    order = "LIMIT 1" if is_one else f"ORDER BY {moment} DESC, id DESC LIMIT :looked_at_max"
    conditions = filters.head_conditions(moment=moment, begin=begin)
    return f"SELECT {FROM_BATCHES} FROM batches WHERE {' AND '.join(conditions)} {order}"
