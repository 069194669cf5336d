"""Up to when a list is settled: nothing can be added to it any more before that moment."""

from datetime import datetime

from sqlalchemy import Connection

from app.batches.schedule import now_of
from app.errors import OutOfReach
from app.postgres.locks import outlast_writers


class Unsettled(OutOfReach):
    """Some transaction that writes to a list does not end."""

    says = "Something has been writing to this list for too long, so its end is not known. Try again in a minute."


def settled_until(connection: Connection, table: str, organization_id: int, *, sandbox: bool) -> datetime:
    """Return a moment just past, of the mode's clock, before which nothing is added to a table any more.

    A row has its time before its transaction commits, so a row that is older than one already seen may still come.

    Raises:
        Unsettled: who writes to the table does not end.
    """
    moment = now_of(connection, organization_id, sandbox=sandbox)
    if not outlast_writers(connection, [table]):
        raise Unsettled
    return moment
