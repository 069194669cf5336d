"""The way to PostgreSQL: the one place that commits, and the one family of errors."""

from collections.abc import Iterator, Mapping
from contextlib import contextmanager

import psycopg
from sqlalchemy import Connection, PoolProxiedConnection
from sqlalchemy.exc import DBAPIError, OperationalError
from sqlalchemy.exc import TimeoutError as PoolTimeout

from app.connections import engine

# What `driver` finds psycopg's connection in.
AnyConnection = Connection | PoolProxiedConnection


def is_away(error: Exception) -> bool:
    """Tell whether PostgreSQL could not be reached, was lost on the way, or had no connection for us.

    How it was lost has many names: an error without a code of PostgreSQL's is none of psycopg's operational ones.
    """
    if isinstance(error, DBAPIError):
        return isinstance(error, OperationalError) or error.connection_invalidated
    return isinstance(error, PoolTimeout)


@contextmanager
def transaction() -> Iterator[Connection]:
    """Open one transaction (READ COMMITTED): committed when the block ends, rolled back when it raises.

    This and `transaction_then` are the one place that commits. Functions that take a `connection` never do.
    """
    with engine().begin() as connection:
        yield connection


class Look:
    """What a statement has seen right after a transaction; known once the transaction has ended."""

    found: bool


@contextmanager
def transaction_then(
    statement: bytes, parameters: Mapping[str, object]
) -> Iterator[tuple[PoolProxiedConnection, Look]]:
    """Open one transaction like `transaction`, and look at something with a statement right after it has committed.

    The commit and the look are one round trip, and so is what the block asks of the driver last and does not
    read: a mistake in that is raised when the block ends, and then nothing is committed. The look is a
    transaction of its own. It holds no lock of the first, and sees what others have committed meanwhile.

    The block asks through `driver` alone, and reads when it has ended: to read before costs a round trip.
    """
    look = Look()
    with bare_connection() as connection, driver(connection) as postgresql:
        looking = postgresql.cursor()
        with postgresql.pipeline():
            postgresql.execute(b"BEGIN")
            yield connection, look
            postgresql.execute(b"COMMIT")
            looking.execute(statement, parameters)
        look.found = looking.fetchone() is not None


@contextmanager
def single_statement() -> Iterator[Connection]:
    """Give a connection on which each statement is a transaction of its own: one round trip instead of three.

    For reads.
    """
    with engine().connect().execution_options(isolation_level="AUTOCOMMIT") as connection:
        yield connection


@contextmanager
def bare_connection() -> Iterator[PoolProxiedConnection]:
    """Lend a connection of the pool for `driver` alone; each statement on it is a transaction of its own.

    For what every send does: to make a connection of SQLAlchemy's of it costs more there than to send the statement.

    Raises:
        DBAPIError, PoolTimeout: as `single_statement` does.
    """
    try:
        lent = engine().raw_connection()
    except psycopg.Error as error:
        raise _as_sqlalchemys(error, was_lost=False) from error
    try:
        with driver(lent) as postgresql:
            postgresql.autocommit = True
        yield lent
    finally:
        _take_back(lent)


def _take_back(lent: PoolProxiedConnection) -> None:
    """Put a connection back as SQLAlchemy wants to find it, or away when it cannot be."""
    postgresql = lent.driver_connection
    if isinstance(postgresql, psycopg.Connection):  # It is gone when it was lost.
        try:
            postgresql.rollback()  # What an exception has left open.
            postgresql.autocommit = False
        except psycopg.Error as error:
            lent.invalidate(error)
    lent.close()


@contextmanager
def driver(connection: AnyConnection) -> Iterator[psycopg.Connection]:
    """Give psycopg's own connection, for the few statements of which every send makes one.

    There SQLAlchemy's share is felt, and pipelines are psycopg's. Errors leave as SQLAlchemy's, so that
    nobody has to know two families of them.
    """
    lent = connection.connection if isinstance(connection, Connection) else connection
    postgresql = lent.driver_connection
    assert isinstance(postgresql, psycopg.Connection), "SQLAlchemy was given psycopg as its driver"
    try:
        yield postgresql
    except psycopg.Error as error:
        was_lost = postgresql.broken or postgresql.closed
        if was_lost:
            connection.invalidate(error)
        raise _as_sqlalchemys(error, was_lost=was_lost) from error


def _as_sqlalchemys(error: psycopg.Error, *, was_lost: bool) -> Exception:
    return DBAPIError.instance(
        None,
        None,
        error,
        psycopg.Error,
        hide_parameters=True,
        connection_invalidated=was_lost,
        dialect=engine().dialect,
    )


@contextmanager
def snapshot() -> Iterator[Connection]:
    """Open a read-only transaction whose statements all see the same moment (REPEATABLE READ)."""
    options = {"isolation_level": "REPEATABLE READ", "postgresql_readonly": True}
    with engine().connect().execution_options(**options) as connection, connection.begin():
        yield connection
