"""The rows of a list between two positions, oldest first, and where the piece ends that begins at a position.

A piece looks at a bounded number of rows, so that a statement stays short however few of them match. What an index
finds by an address or a reference is little, and is sorted for each piece.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, NamedTuple

from sqlalchemy import Connection, text

from app.errors import NotFound
from app.exports.columns import BATCHES, ISSUED_AT, REVERSALS, SENDER, TRANSACTIONS
from app.pages import addresses, batch_pages, far
from app.pages.filters import CursorPosition, Filters
from app.pages.statements import COLUMNS_OF_TRANSACTION, FROM_BATCHES, INDEX_ORDER_ONLY
from app.reversals.reversal import reversals
from app.values.ids import POSITIONS, batch_and_position, require_id

# A few megabytes, and a tenth of a second. A batch is not divided, so a piece may be longer by a batch.
PIECE_ROWS = 20_000

# Where the times of each list are.
TABLES = {TRANSACTIONS: "batches", BATCHES: "batches", REVERSALS: "reversals"}
NOUNS = {TRANSACTIONS: "transaction", BATCHES: "batch", REVERSALS: "reversal"}
MOMENTS = {TRANSACTIONS: "issued_at", BATCHES: "created_at", REVERSALS: "created_at"}


class Piece(NamedTuple):
    """A piece of a list: its statement from `FROM` on, and the position where it ends.

    `end` is None if only the last row tells it. Then a piece of fewer rows than `PIECE_ROWS` is the last.
    """

    statement: str
    parameters: Mapping[str, Any]
    end: CursorPosition | None


@dataclass(frozen=True, kw_only=True, slots=True)
class Source:
    """The rows of a list that match the filters, whose `created_to` is the end of the export."""

    kind: str
    filters: Filters

    def piece(self, connection: Connection, start: CursorPosition | None) -> Piece | None:
        """Return the piece behind a position, in a transaction that does nothing else; None behind the last row."""
        parameters = self.filters.parameters() | {"rows": PIECE_ROWS} | ({} if start is None else start.parameters())
        if self.kind == TRANSACTIONS and (self.filters.email_key or self.filters.reference):
            return Piece(_found_by_index(self.filters, start), parameters, None)
        if not self._is_of_few:
            connection.execute(INDEX_ORDER_ONLY)
        end = connection.execute(text(self._end_of_piece(start)), parameters).one_or_none()
        if end is None:
            return None
        parameters |= {"end_moment": end.moment, "end_id": end.id}
        last_id = end.id * POSITIONS + POSITIONS - 1 if self.kind == TRANSACTIONS else end.id
        order = f"{MOMENTS[self.kind]}, id{', position' if self.kind == TRANSACTIONS else ''}"
        return Piece(f"{self._rows(start)} ORDER BY {order}", parameters, CursorPosition(end.moment, last_id))

    @property
    def _is_of_few(self) -> bool:
        """Tell whether another index finds the few that may match: that is better than to read the list in order."""
        keys = (self.filters.email_key, self.filters.reference, self.filters.batch_id, self.filters.idempotency_key)
        return any(key is not None for key in keys)

    def _end_of_piece(self, start: CursorPosition | None) -> str:
        """Return the statement of the last batch or reversal of the piece, by the rows that it would look at."""
        is_searched = self.filters.credit is not None or self.filters.label_part is not None
        is_looked_into = self.kind == TRANSACTIONS or (self.kind == BATCHES and is_searched)
        moment, weight = MOMENTS[self.kind], "recipient_count" if is_looked_into else "1"
        return f"""
            SELECT {moment} AS moment, id FROM (
                SELECT {moment}, id, sum({weight}) OVER (ORDER BY {moment}, id) - {weight} AS rows_before
                FROM (SELECT * FROM {TABLES[self.kind]} WHERE {self._heads(start)}
                      ORDER BY {moment}, id LIMIT :rows) in_scope
            ) looked_at WHERE rows_before < :rows ORDER BY {moment} DESC, id DESC LIMIT 1
        """

    def _heads(self, start: CursorPosition | None) -> str:
        """Return the condition on the batches or reversals behind a position that an index serves."""
        moment, filters = MOMENTS[self.kind], self.filters
        begin = "" if start is None else f"({moment}, id) {_after(self.kind, start)}"
        conditions = filters.head_conditions(moment=moment, begin=begin)
        if filters.email_key is not None:  # Of a batch: it has a transaction of that address.
            of_label = [] if filters.label_part is None else [batch_pages.LABEL_OF_ROW]
            flags = " AND ".join(["true", *filters.flag_conditions(), *of_label])
            rows = addresses.from_index(filters, f"batch_id, {COLUMNS_OF_TRANSACTION}")
            label = (
                "CROSS JOIN LATERAL (SELECT label FROM batches WHERE id = t.batch_id LIMIT 1) its" if of_label else ""
            )
            conditions.append(f"id = ANY(ARRAY(SELECT batch_id FROM {rows} {label} WHERE {flags}))")
        return " AND ".join(conditions)

    def _rows(self, start: CursorPosition | None) -> str:
        moment = MOMENTS[self.kind]
        heads = f"{self._heads(start)} AND ({moment}, id) <= (:end_moment, :end_id)"
        if self.kind == REVERSALS:
            matches = " AND ".join(["true", *self.filters.batch_conditions()])
            return (
                f"FROM (SELECT {reversals.columns}, sandbox, {SENDER} FROM reversals WHERE {heads}) r WHERE {matches}"
            )
        if self.kind == BATCHES:
            matches = " AND ".join([batch_pages.flags(self.filters), *self.filters.batch_conditions()])
            if self.filters.email_key is not None:  # Its rows have matched.
                matches = " AND ".join(["true", *self.filters.batch_conditions(label="true")])
            return f"FROM (SELECT {FROM_BATCHES}, {SENDER} FROM batches WHERE {heads}) looked_at WHERE {matches}"
        batches = (
            f"SELECT {FROM_BATCHES}, {SENDER}, {ISSUED_AT} FROM batches WHERE {heads} AND {far.of_batch(self.filters)}"
        )
        rows = far.transactions_of_batch(self.filters, None, is_bounded=False)
        return f"""
            FROM ({batches} ORDER BY {moment}, id) b CROSS JOIN LATERAL ({rows} ORDER BY position OFFSET 0) t
            WHERE {"true" if start is None else "(id <> :start_batch_id OR position > :start_position)"}
        """


def _after(kind: str, start: CursorPosition) -> str:
    """Return how a batch or a reversal compares with a position; a batch that was begun is looked at again."""
    if kind != TRANSACTIONS:
        return "> (:start_moment, :start_id)"
    _, position = batch_and_position(start.id)
    return f"{'>' if position == POSITIONS - 1 else '>='} (:start_moment, :start_batch_id)"


def _found_by_index(filters: Filters, start: CursorPosition | None) -> str:
    rows = addresses.from_index(filters, f"batch_id, {COLUMNS_OF_TRANSACTION}")
    conditions = [*filters.scope_conditions(moment="issued_at"), *filters.flag_conditions()]
    conditions += [*filters.sender_conditions(), *filters.part_conditions()]
    if filters.batch_id is not None:
        conditions.append("id = :batch_id")
    if filters.email_key is not None:
        conditions.append(addresses.HAS_ADDRESS)
    if start is not None:
        conditions.append("(issued_at, id, position) > (:start_moment, :start_batch_id, :start_position)")
    return f"""
        FROM {rows}
        CROSS JOIN LATERAL (SELECT {FROM_BATCHES}, {SENDER}, {ISSUED_AT} FROM batches WHERE id = t.batch_id LIMIT 1) b
        WHERE {" AND ".join(conditions)} ORDER BY issued_at, id, position LIMIT :rows
    """


def position_of(connection: Connection, kind: str, row_id: int, filters: Filters) -> CursorPosition:
    """Return the position of a transaction, a batch or a reversal in the list of its organization and mode.

    Raises:
        NotFound: they have no such row.
    """
    require_id(NOUNS[kind], row_id)
    head_id, position = batch_and_position(row_id) if kind == TRANSACTIONS else (row_id, 0)
    room = "AND :position < recipient_count" if kind == TRANSACTIONS else ""
    statement = text(f"""
        SELECT {MOMENTS[kind]} FROM {TABLES[kind]}
        WHERE id = :id AND organization_id = :organization_id AND sandbox = :sandbox {room}
    """)
    moment = connection.execute(statement, filters.parameters() | {"id": head_id, "position": position}).scalar()
    if moment is None:
        raise NotFound(NOUNS[kind], row_id)
    return CursorPosition(moment, row_id)
