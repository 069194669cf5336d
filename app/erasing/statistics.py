"""The addresses of an erased user in the statistics by which PostgreSQL plans: they hold values of single rows.

It keeps them until a table is analysed again, which may take weeks. Few tables have a value of one user there.
"""

from collections.abc import Iterable

from sqlalchemy import text

from app.postgres.connections import wait_at_most
from app.postgres.database import transaction
from app.uploads.addresses import composed
from app.values.addresses import spellings

_ANALYSED_WITHIN_S = 300.0


def forget(keys: Iterable[str]) -> None:
    """Analyse each table whose statistics may hold one of these addresses, once no row has it any more."""
    spelled = [spelling for key in keys for spelling in spellings(key)]
    with transaction() as connection:
        kept = connection.execute(_KEPT).all()
    tables = {table for table, values in kept if any(address in composed(values).lower() for address in spelled)}
    # Of `uploads`, the statistics may hold a file as bytes in whatever encoding.
    for table in sorted(tables | {"uploads"}):
        with transaction() as connection:
            wait_at_most(connection, _ANALYSED_WITHIN_S)
            connection.exec_driver_sql(f"ANALYZE {table}")


# Those of an expression in an index have the index's name.
_KEPT = text("""
    SELECT CAST(CAST(coalesce(i.indrelid, c.oid) AS regclass) AS text), concat_ws(' ',
               CAST(s.most_common_vals AS text), CAST(s.histogram_bounds AS text), CAST(s.most_common_elems AS text))
    FROM pg_stats s JOIN pg_class c ON c.relname = s.tablename AND c.relnamespace = to_regnamespace(s.schemaname)
    LEFT JOIN pg_index i ON i.indexrelid = c.oid
    WHERE s.schemaname = current_schema()
    UNION ALL
    SELECT quote_ident(tablename), concat_ws(' ', CAST(most_common_vals AS text), CAST(histogram_bounds AS text))
    FROM pg_stats_ext_exprs WHERE schemaname = current_schema()
""")
