"""How much disk the books take, by table and index, and whether there is room for more."""

import shutil
import tempfile

import psycopg

from benchmarks.options import NotMeasured

# At 10 million rows it was 330, and here is a tenth to spare. Beside them: 2 GB of users with their balances, the log,
# and what the audit sorts.
_ROW_BYTES_MAX = 360
_BESIDE_BYTES = 6 * 10**9
# Less than this a row is not worth a line.
_SHOWN_FROM_BYTES = 0.5


def require_room(rows: int) -> None:
    """Require that so many transactions find room where the service under test keeps its data.

    Raises:
        NotMeasured: they may not.
    """
    folder = tempfile.gettempdir()
    needed, free = rows * _ROW_BYTES_MAX + _BESIDE_BYTES, shutil.disk_usage(folder).free
    if free < needed:
        raise NotMeasured(
            f"{rows:,} rows may take {needed / 1e9:.0f} GB, and {folder} has {free / 1e9:.0f} GB free:"
            " measure fewer with --rows, or set TMPDIR to a larger disk."
        )


def bytes_by_relation(connection: psycopg.Connection[tuple[object, ...]], rows: int) -> dict[str, float]:
    """Return the bytes a transaction of each table and index; those of the partitions together, with `all`."""
    found = {str(name): int(str(size)) / rows for name, size in connection.execute(_SIZES)}
    shown = {name: size for name, size in found.items() if size >= _SHOWN_FROM_BYTES}
    return {"all": sum(found.values()), **shown}


# A table's arrays are stored out of line, in a table of their own.
_SIZES = """
    SELECT coalesce(p.relname, c.relname) || CASE part WHEN 'heap' THEN '' ELSE ', out of line' END AS name,
           sum(CASE part WHEN 'heap' THEN pg_relation_size(c.oid) + pg_relation_size(c.oid, 'fsm')
                                          + pg_relation_size(c.oid, 'vm')
                         ELSE pg_total_relation_size(c.reltoastrelid) END) AS size
    FROM pg_class c
    LEFT JOIN pg_inherits i ON i.inhrelid = c.oid
    LEFT JOIN pg_class p ON p.oid = i.inhparent
    CROSS JOIN (VALUES ('heap'), ('out of line')) AS parts (part)
    WHERE c.relnamespace = CAST('public' AS regnamespace) AND c.relkind IN ('r', 'i')
      AND (part = 'heap' OR c.reltoastrelid <> 0)
    GROUP BY 1 ORDER BY 2 DESC, 1
"""
