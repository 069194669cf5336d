"""Whether PostgreSQL's disk has room. On a full one it still reads, and says nothing of it until a write fails."""

import psycopg
from sqlalchemy import Connection, text
from sqlalchemy.exc import DBAPIError


def is_full(connection: Connection) -> bool:
    """Tell whether the disk of the tables is full, within a transaction.

    PostgreSQL writes as many pages to a temporary file as a table grows by at once. A row that is rolled back would
    tell less, as it takes a free page of its table, and would leave a dead row, an id and a record in the log.

    The disk of the log (`pg_wal`) is not asked: when it is full, PostgreSQL ends, and is out of reach.
    """
    savepoint = connection.begin_nested()
    try:
        connection.execute(_SMALL_MEMORY)
        connection.execute(_PAGES)
    except DBAPIError as error:
        if not isinstance(error.orig, psycopg.errors.DiskFull):
            raise
        return True
    finally:
        savepoint.rollback()
    return False


# What memory does not hold is written, to the disk of the tables. Both settings end with the savepoint.
_SMALL_MEMORY = text("SELECT set_config('work_mem', '64kB', true), set_config('temp_tablespaces', '', true)")
_PAGES = text("""
    WITH pages AS MATERIALIZED (SELECT repeat('x', 8000) FROM generate_series(1, 64))
    SELECT count(*) FROM pages
""")
