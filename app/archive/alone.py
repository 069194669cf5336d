"""One process archives at a time."""

from collections.abc import Iterator
from contextlib import contextmanager, suppress

from sqlalchemy import Connection, text
from sqlalchemy.exc import SQLAlchemyError

from app.errors import Refused
from app.postgres.connections import engine
from app.postgres.locks import Kind, number
from app.settings import settings


class ArchiveRuns(Refused):
    """Another process archives now."""

    says = "Another process archives now. Nothing was done: let it end."


@contextmanager
def alone() -> Iterator[Connection]:
    """Hold the lock of the archive by a session, and yield its connection, which commits after each statement.

    What PostgreSQL goes on with when this process is killed belongs on it: so long the lock is held.

    Raises:
        ArchiveRuns: another process holds it.
        Refused: through a pooler the lock would stay with a connection that others get.
    """
    if settings().database_pooler:
        raise Refused(
            "The archive does not work through a pooler. Give `points archive` the address of PostgreSQL itself in"
            " DATABASE_URL, and POINTS_DATABASE_POOLER=false."
        )
    lock = {"lock": number(Kind.ARCHIVE)}
    with engine().connect().execution_options(isolation_level="AUTOCOMMIT") as connection:
        if not connection.execute(text("SELECT pg_try_advisory_lock(:lock)"), lock).scalar_one():
            raise ArchiveRuns
        try:
            yield connection
        finally:
            with suppress(SQLAlchemyError):  # At once; with its session, it goes a moment later.
                connection.execute(text("SELECT pg_advisory_unlock(:lock)"), lock)
            connection.invalidate()
