"""Up to when a list is settled: nothing can be added to it any more before that moment."""

import time
from datetime import datetime

from sqlalchemy import Connection, text

from app.batches.schedule import now_of
from app.errors import OutOfReach

# Longer than any transaction of the service may last (app/postgres/connections.py).
_PATIENCE_S = 25.0
_PAUSE_S = 0.005


class Unsettled(OutOfReach):
    """Some transaction that writes to a list does not end."""

    says = "Something has been writing to this list for too long, so its end is not known. Try again in a minute."


def settled_until(connection: Connection, table: str, organization_id: int, *, sandbox: bool) -> datetime:
    """Return a moment just past, of the mode's clock, before which nothing is added to a table any more.

    A row has its time before its transaction commits, so a row that is older than one already seen may still come.
    Whoever writes to a table holds a lock on it, from before a row gets its time until after the commit. So it is
    enough to wait for the few who hold it now. They are not kept from anything.

    Raises:
        Unsettled: one of them holds it for too long.
    """
    moment = now_of(connection, organization_id, sandbox=sandbox)
    give_up_at = time.monotonic() + _PATIENCE_S
    writing = now_writing = _writing_to(connection, table)
    while writing := writing & now_writing:
        if time.monotonic() > give_up_at:
            raise Unsettled
        time.sleep(_PAUSE_S)
        now_writing = _writing_to(connection, table)
    return moment


def _writing_to(connection: Connection, table: str) -> set[str]:
    return set(connection.execute(_WRITING_TO, {"table": table}).scalars())


# PostgreSQL's own name of a transaction, which is never used again.
_WRITING_TO = text("""
    SELECT virtualtransaction FROM pg_locks
    WHERE locktype = 'relation' AND relation = to_regclass(:table) AND mode = 'RowExclusiveLock'
      AND database = (SELECT oid FROM pg_database WHERE datname = current_database())
""")
