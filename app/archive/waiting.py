"""Waiting for all transactions that run now, which may not have seen what was just committed; and taking long."""

import time

from sqlalchemy import Connection, text

from app.postgres.connections import disable_timeouts
from app.postgres.database import single_statement

_LOOK_EVERY_S = 0.05


def has_all_ended(*, patience_s: float) -> bool:
    """Wait until every transaction of this database that runs now has ended; False if that takes too long."""
    deadline = time.monotonic() + patience_s
    with single_statement() as connection:
        waited_for = _running(connection)
        while waited_for := waited_for & _running(connection):
            if time.monotonic() > deadline:
                return False
            time.sleep(_LOOK_EVERY_S)
    return True


def without_limit(connection: Connection) -> None:
    """Let the statements of a transaction take as long as they need, and read whole tables."""
    disable_timeouts(connection)
    connection.execute(text("SET LOCAL statement_timeout = 0"))
    connection.execute(text("SET LOCAL enable_seqscan = on"))


def _running(connection: Connection) -> set[str]:
    return set(connection.execute(_RUNNING).scalars())


# Each transaction holds a lock on its own virtual id, also one that only reads. A vacuum or an ANALYZE sees no row of
# ours, and may take hours.
_RUNNING = text("""
    SELECT l.virtualtransaction FROM pg_locks l JOIN pg_stat_activity a ON a.pid = l.pid
    WHERE l.locktype = 'virtualxid' AND l.granted AND a.datname = current_database() AND l.pid <> pg_backend_pid()
      AND a.backend_type IS DISTINCT FROM 'autovacuum worker'
      AND NOT EXISTS (SELECT FROM pg_stat_progress_vacuum v WHERE v.pid = l.pid)
      AND NOT EXISTS (SELECT FROM pg_stat_progress_analyze v WHERE v.pid = l.pid)
""")
