"""The columns of a table as the archive stores them: read as CSV, typed, and written back as the same CSV."""

from collections.abc import Iterable, Iterator
from hashlib import sha256
from io import BytesIO
from typing import Any, NamedTuple

import pyarrow as pa
from pyarrow import csv
from sqlalchemy import Connection, text

from app.postgres.database import copied

# So much CSV is read at once; a row group of a file comes from it.
_PIECE_BYTES = 8 << 20

_TIME = pa.timestamp("us", "UTC")
# How a type of PostgreSQL travels, and what is stored. The text of a moment depends on the session, so it travels as
# microseconds; numbers stand without quotes, and each text has them.
_TYPES = {
    "bigint": ("{0}", pa.int64(), pa.int64()),
    "integer": ("{0}", pa.int32(), pa.int32()),
    "boolean": ("CAST({0} AS int)", pa.int8(), pa.bool_()),
    "timestamp with time zone": ("CAST(extract(epoch FROM {0}) * 1000000 AS bigint)", pa.int64(), _TIME),
    "text": ("{0}", pa.string(), pa.string()),
    "json": ("CAST({0} AS text)", pa.string(), pa.string()),
    "bytea": ("encode({0}, 'hex')", pa.string(), pa.string()),
}


class Column(NamedTuple):
    """A column: its SQL, its type in CSV, and the one in the file."""

    name: str
    sql: str
    sent_as: Any
    stored_as: Any


class Source(NamedTuple):
    """What is archived of a table: some rows in an order, as columns. `:first` and `:end` bound the batch ids."""

    columns: tuple[Column, ...]
    rows: str

    @property
    def schema(self) -> Any:
        """The types of a file."""
        return pa.schema([(column.name, column.stored_as) for column in self.columns])


def transactions(connection: Connection) -> Source:
    """Return the transactions of a range whole, in the order of their ids."""
    rows = "transactions WHERE batch_id >= :first AND batch_id < :end ORDER BY batch_id, position"
    return Source(_columns(connection, "transactions"), rows)


def batches(connection: Connection) -> Source:
    """Return the issued batches of a range, without lists: their transactions have what stands in these."""
    rows = "batches WHERE id >= :first AND id < :end AND status = 'issued' ORDER BY id"
    return Source(_columns(connection, "batches"), rows)


def _columns(connection: Connection, table: str) -> tuple[Column, ...]:
    found = connection.execute(_COLUMNS, {"table": table}).all()
    return tuple(
        Column(name, _TYPES[kind][0].format(f'"{name}"'), *_TYPES[kind][1:])
        for name, kind in found
        if not kind.endswith("[]")
    )


_COLUMNS = text("""
    SELECT attname, format_type(atttypid, NULL) FROM pg_attribute
    WHERE attrelid = CAST(:table AS regclass) AND attnum > 0 AND NOT attisdropped ORDER BY attnum
""")


def read(connection: Connection, source: Source, first: int, end: int) -> Iterator[bytes]:
    """Yield the rows of a range as pieces of CSV."""
    columns = ", ".join(f'{column.sql} AS "{column.name}"' for column in source.columns)
    quoted = ", ".join(f'"{column.name}"' for column in source.columns if column.sent_as == pa.string())
    rows: list[bytes] = []
    size = 0
    bounds = {"first": first, "end": end}
    for row in copied(
        connection, f"SELECT {columns} FROM {source.rows}", f"FORMAT csv, FORCE_QUOTE ({quoted})", bounds
    ):
        rows.append(row)
        size += len(row)
        if size >= _PIECE_BYTES:
            yield b"".join(rows)
            rows, size = [], 0
    if rows:
        yield b"".join(rows)


def typed(source: Source, piece: bytes) -> Any:
    """Return a piece of CSV as a table of the file."""
    sent_as = {column.name: column.sent_as for column in source.columns}
    table = csv.read_csv(
        pa.BufferReader(piece),
        read_options=csv.ReadOptions(column_names=list(sent_as), block_size=len(piece)),
        parse_options=csv.ParseOptions(newlines_in_values=True),
        convert_options=csv.ConvertOptions(
            column_types=sent_as, null_values=[""], strings_can_be_null=True, quoted_strings_can_be_null=False
        ),
    )
    return table.cast(source.schema)


def as_csv(source: Source, rows: Iterable[Any]) -> Iterator[bytes]:
    """Yield record batches of a file as PostgreSQL writes them."""
    sent = pa.schema([(column.name, column.sent_as) for column in source.columns])
    options = csv.WriteOptions(include_header=False, quoting_style="needed")
    for batch in rows:
        written = BytesIO()
        csv.write_csv(pa.Table.from_batches([batch]).cast(sent), written, options)
        yield written.getvalue()


def digest_of(pieces: Iterable[bytes]) -> str:
    """Return the SHA-256 of pieces of CSV."""
    read = sha256()
    for piece in pieces:
        read.update(piece)
    return read.hexdigest()
