"""What is left of a text in the tables, wherever it may be."""

from collections.abc import Sequence

from app.postgres.database import transaction

_TABLES = """
    SELECT c.relname FROM pg_class c JOIN pg_namespace n ON n.oid = c.relnamespace
    WHERE n.nspname = 'public' AND c.relkind IN ('r', 'p') AND NOT c.relispartition ORDER BY 1
"""


def tables_with(needles: Sequence[str]) -> list[str]:
    """Return each table with a row that has a needle, in whatever column: as text, in JSON, or as bytes.

    Args:
        needles: in lower case.
    """
    wanted = [*needles, *(needle.encode().hex() for needle in needles)]
    found = []
    with transaction() as connection:
        for table in connection.exec_driver_sql(_TABLES).scalars().all():
            rows = connection.exec_driver_sql(f"SELECT lower(CAST(t AS text)) FROM {table} t").scalars().all()
            found += [f"{table}: {needle}" for needle in wanted if any(needle in row for row in rows)]
    return found
