"""The way to PostgreSQL: the one place where transactions begin and end, and the one family of errors."""

from collections.abc import Iterator
from contextlib import contextmanager

import psycopg
from psycopg import IsolationLevel
from psycopg.pq import TransactionStatus
from sqlalchemy import Connection, PoolProxiedConnection, text
from sqlalchemy.exc import DBAPIError, OperationalError
from sqlalchemy.exc import TimeoutError as PoolTimeout

from app.connections import engine
from app.exchange import Exchange, Statement
from app.timed_connection import TimedConnection

# What `driver` finds psycopg's connection in.
AnyConnection = Connection | PoolProxiedConnection


# What psycopg has in no family of outages: a database that was never migrated (`/readyz` says so), a pooler that leads
# to a standby, which refuses what is to be written, and the last words of a session that PostgreSQL has ended, where
# they are read before the end of its connection is.
_OUTAGES = (
    psycopg.errors.UndefinedTable,
    psycopg.errors.ReadOnlySqlTransaction,
    psycopg.errors.IdleInTransactionSessionTimeout,
    psycopg.errors.TransactionTimeout,
)


def is_away(error: Exception) -> bool:
    """Tell whether PostgreSQL could not be reached, was lost on the way, or had no connection for us.

    How it was lost has many names: an error without a code of PostgreSQL's is none of psycopg's operational ones.
    """
    if isinstance(error, DBAPIError):
        is_outage = isinstance(error, OperationalError) or isinstance(error.orig, _OUTAGES)
        return is_outage or error.connection_invalidated
    return isinstance(error, PoolTimeout)


def is_locked_out(error: Exception) -> bool:
    """Tell whether a statement has waited for somebody else's lock as long as it may."""
    return getattr(getattr(error, "orig", error), "sqlstate", None) == psycopg.errors.LockNotAvailable.sqlstate


@contextmanager
def transaction() -> Iterator[Connection]:
    """Open one transaction (READ COMMITTED): committed when the block ends, rolled back when it raises.

    Functions that take a `connection` or an exchange never commit. Who calls them does, in one of four ways: with this;
    with `transaction_then`, a drain; with `together` on a `bare_connection`, where all that is asked is one
    transaction, as when a send is accepted; with `single_statement`.
    """
    with engine().begin() as connection:
        yield connection


class Look:
    """Whether a statement has found a row right after a transaction; known once the transaction has ended."""

    found: bool


@contextmanager
def transaction_then(statement: Statement, **values: str | int | None) -> Iterator[tuple[Exchange, Look]]:
    """Open one transaction like `transaction`, and look for a row with a statement right after it has committed.

    What the block asks, the commit and the look are one message to PostgreSQL, sent when the block ends: so a
    mistake in the block or the commit is raised then, and nothing is committed. The look is a transaction of its own.
    It holds no lock of the first, and sees what others have committed meanwhile; were it to fail, that would be
    raised although the first is committed.
    """
    look = Look()
    with bare_connection() as connection, together(connection) as exchange:
        exchange.ask(_BEGIN)
        yield exchange, look
        exchange.ask(_COMMIT)
        looked = exchange.ask(statement, **values)
    look.found = bool(looked.rows)


_BEGIN, _COMMIT = Statement("BEGIN"), Statement("COMMIT")


@contextmanager
def single_statement() -> Iterator[Connection]:
    """Give a connection on which each statement is a transaction of its own: one round trip instead of three.

    For reads, and for the note that a key was used.
    """
    with engine().connect().execution_options(isolation_level="AUTOCOMMIT") as connection:
        yield connection


@contextmanager
def bare_connection() -> Iterator[PoolProxiedConnection]:
    """Lend a connection of the pool for `together` alone, without a transaction around it.

    For what every send does: to make a connection of SQLAlchemy's of it costs more there than to send the statement.

    Raises:
        DBAPIError, PoolTimeout: as `single_statement` does.
    """
    try:
        lent = engine().raw_connection()
    except psycopg.Error as error:
        raise _as_sqlalchemys(error, was_lost=False) from error
    try:
        yield lent
    finally:
        lent.close()


@contextmanager
def together(connection: AnyConnection) -> Iterator[Exchange]:
    """Open an exchange, whose statements go to PostgreSQL in one message when the block ends.

    On a connection of SQLAlchemy's they are part of its transaction, on a bare one a transaction by themselves.

    Raises:
        DBAPIError: one of them has failed, and those after it were not run; or the connection was lost.
    """
    with driver(connection) as postgresql, Exchange(postgresql) as exchange:
        if isinstance(connection, Connection) and not postgresql.autocommit:
            assert postgresql.isolation_level in {None, IsolationLevel.READ_COMMITTED}, "this begins no other kind"
            if postgresql.pgconn.transaction_status == TransactionStatus.IDLE:  # psycopg has not begun it yet.
                exchange.ask(_BEGIN)
        yield exchange


@contextmanager
def driver(connection: AnyConnection) -> Iterator[TimedConnection]:
    """Give psycopg's own connection, where SQLAlchemy's share is felt.

    Errors leave as SQLAlchemy's, so that nobody has to know two families of them.
    """
    lent = connection.connection if isinstance(connection, Connection) else connection
    postgresql = lent.driver_connection
    assert isinstance(postgresql, TimedConnection), "every engine of ours makes these"
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
    """Open a read-only transaction whose statements all see one moment (REPEATABLE READ), and may read whole tables."""
    options = {"isolation_level": "REPEATABLE READ", "postgresql_readonly": True}
    with engine().connect().execution_options(**options) as connection, connection.begin():
        connection.execute(text("SET LOCAL enable_seqscan = on"))
        yield connection
