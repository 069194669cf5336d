"""What an export writes of a row: its columns, as CSV or as a line of JSON, written by PostgreSQL itself."""

import json
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import NamedTuple

from app.batches.transaction import CREDITED, HELD, RETURNED, REVERSED, UNPAID
from app.recipient_files.cells import marked_as_text_in_sql
from app.values.ids import POSITIONS

FORMS = CSV, JSONL = "csv", "jsonl"
KINDS = TRANSACTIONS, BATCHES, REVERSALS = "transactions", "batches", "reversals"

# Of each form the options of COPY, and the byte after each of its columns. JSON escapes all control characters, so no
# line of it holds one of these, and COPY changes nothing in it.
_COPY_OPTIONS = {CSV: "FORMAT csv", JSONL: r"FORMAT csv, DELIMITER E'\x1f', QUOTE E'\x1e'"}
_DELIMITERS = {CSV: b",", JSONL: b"\x1f"}


class Column(NamedTuple):
    """A column, as SQL; `is_text` if somebody else chose what it holds, which must not run in a spreadsheet."""

    name: str
    sql: str
    is_text: bool = False


def _timestamp(column: str) -> str:
    """Word in SQL what `app.values.timestamps.timestamp` does."""
    return f"to_char({column} AT TIME ZONE 'UTC', 'YYYY-MM-DD\"T\"HH24:MI:SS.US\"Z\"')"


# What is the same for all transactions of a batch: worked out once for each.
ISSUED_AT = f"{_timestamp('issued_at')} AS issued_at_text"
SENDER = """
    CASE WHEN member_id IS NOT NULL
         THEN (SELECT nullif(btrim(concat_ws(' ', m.first_name, m.last_name)), '') COLLATE "C"
               FROM members m WHERE m.id = member_id) END AS sender_name
"""

_AMOUNT = "coalesce(own_amount, amount)"
_STATE = f"""
    CASE WHEN points_left = 0 THEN CASE WHEN returned_at IS NULL THEN '{REVERSED}' ELSE '{RETURNED}' END
         WHEN credited THEN '{CREDITED}' WHEN debited THEN '{HELD}' ELSE '{UNPAID}' END
"""

_MODE = Column("mode", "CASE WHEN sandbox THEN 'sandbox' ELSE 'live' END")

COLUMNS: Mapping[str, Sequence[Column]] = {
    TRANSACTIONS: (
        Column("transaction_id", f"id * {POSITIONS} + position"),
        Column("batch_id", "id"),
        Column("issued_at", "issued_at_text"),
        Column("email", "email", is_text=True),
        Column("reference", "reference", is_text=True),
        Column("label", "coalesce(own_label, label)", is_text=True),
        Column("amount", _AMOUNT),
        Column("points", f"CASE WHEN debited THEN {_AMOUNT} ELSE 0 END"),
        Column("reversed", f"coalesce({_AMOUNT} - points_left, 0)"),
        Column("state", _STATE),
        Column("balance", "balance"),
        Column("sender", "sender_name", is_text=True),
        _MODE,
    ),
    BATCHES: (
        Column("batch_id", "id"),
        Column("created_at", _timestamp("created_at")),
        Column("issued_at", _timestamp("issued_at")),
        Column("status", "status"),
        Column("label", "label", is_text=True),
        Column("sender", "sender_name", is_text=True),
        Column("recipients", "recipient_count"),
        Column("debited", "debited_count"),
        Column("points", "debited_amount"),
        Column("balance", "current_balance"),
        _MODE,
    ),
    REVERSALS: (
        Column("reversal_id", "id"),
        Column("created_at", _timestamp("created_at")),
        Column("done_at", _timestamp("done_at")),
        Column("status", "status"),
        Column("batch_id", "batch_id"),
        Column("reason", "reason", is_text=True),
        Column("sender", "sender_name", is_text=True),
        Column("points", "reversed_amount"),
        Column("balance", "current_balance"),
        _MODE,
    ),
}
# The columns that the last line sums.
SUMMED: Mapping[str, Sequence[str]] = {
    TRANSACTIONS: ("points", "reversed"),
    BATCHES: ("points",),
    REVERSALS: ("points",),
}


class Lines(NamedTuple):
    """Rows that COPY has written: how many, the id of the last, the sums of each summed column, and their lines."""

    rows: int
    last_id: int
    sums: Sequence[int]
    content: bytes


@dataclass(frozen=True, kw_only=True, slots=True)
class Writing:
    """How the rows of a list are written in a form."""

    kind: str
    form: str

    def copy(self, source: str) -> tuple[str, str]:
        """Return the query of the rows of a source, from `FROM` on, and the options with which `COPY` writes them.

        Before what the file has of it, each row has its id and the values that are summed.
        """
        columns = COLUMNS[self.kind]
        values = {column.name: column.sql for column in columns}
        counted = [columns[0].sql, *(f"coalesce({values[name]}, 0)" for name in SUMMED[self.kind])]
        if self.form == CSV:
            cells = [marked_as_text_in_sql(f"({column.sql})") if column.is_text else column.sql for column in columns]
        else:
            named = ", ".join(f'{column.sql} AS "{column.name}"' for column in columns)
            cells = [f"(SELECT row_to_json(line) FROM (SELECT {named}) line)"]
        return f"SELECT {', '.join(counted + cells)} {source}", _COPY_OPTIONS[self.form]

    def read(self, rows: Iterable[bytes]) -> Lines | None:
        """Read the rows that the query of `copy` has written; None if there is none."""
        delimiter, cuts = _DELIMITERS[self.form], len(SUMMED[self.kind]) + 1
        columns = list(zip(*[row.split(delimiter, cuts) for row in rows], strict=True))
        if not columns:
            return None
        ids, *summed, lines = columns
        return Lines(len(lines), int(ids[-1]), [sum(map(int, values)) for values in summed], b"".join(lines))

    def heading(self) -> bytes:
        """Return the first line: of CSV the names of the columns, of JSON lines none."""
        return f"{','.join(column.name for column in COLUMNS[self.kind])}\n".encode() if self.form == CSV else b""

    def last_line(self, rows: int, sums: Mapping[str, int], *, after: int | None) -> bytes:
        """Return the last line. Where it is missing, the file broke off; its sums stand in their own columns."""
        if self.form == JSONL:
            return f"{json.dumps({'total': {'rows': rows, **sums, 'after': after}})}\n".encode()
        words = f"total of {rows} rows" + ("" if after is None else f" after {after}")
        cells = [words, *(str(sums.get(column.name, "")) for column in COLUMNS[self.kind][1:])]
        return f"{','.join(cells)}\n".encode()
