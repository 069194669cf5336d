"""What is left of a text in PostgreSQL, wherever it may be."""

from collections.abc import Sequence

from sqlalchemy import Connection, text

from app.postgres.database import transaction

_TABLES = """
    SELECT c.relname FROM pg_class c JOIN pg_namespace n ON n.oid = c.relnamespace
    WHERE n.nspname = 'public' AND c.relkind IN ('r', 'p') AND NOT c.relispartition ORDER BY 1
"""
# What the planner keeps of the values of single rows.
_STATISTICS = ("pg_stats", "pg_stats_ext", "pg_stats_ext_exprs")


def tables_with(needles: Sequence[str], connection: Connection | None = None) -> list[str]:
    """Return each table with a row that has a needle, in whatever column: as text, in JSON, or as bytes.

    Args:
        needles: in lower case.
    """
    if connection is None:
        with transaction() as own:
            return tables_with(needles, own)
    wanted = [*needles, *(needle.encode().hex() for needle in needles)]
    found = []
    for table in [*connection.exec_driver_sql(_TABLES).scalars(), *_STATISTICS]:
        having = text(f"""
            SELECT needle FROM unnest(CAST(:wanted AS text[])) AS needle
            WHERE EXISTS (SELECT FROM {table} t WHERE strpos(lower(CAST(t AS text)), needle) > 0)
        """)
        found += [f"{table}: {needle}" for needle in connection.execute(having, {"wanted": wanted}).scalars()]
    return found
