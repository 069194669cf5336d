"""Transactions and statements: the only place where transactions begin and end, and how errors are classed."""

from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import Any, TypeVar

import psycopg
from sqlalchemy import Connection, Row, TextClause, text
from sqlalchemy.exc import DBAPIError, OperationalError
from sqlalchemy.exc import TimeoutError as PoolTimeout

from app.errors import NotFound
from app.postgres.connections import engine, psycopg_connection
from app.scope import NOBODY, Author
from app.settings import INT64_MAX
from app.values.ids import require_id

_T = TypeVar("_T")

# Errors that mean an outage although psycopg does not class them as OperationalError: a database without the tables
# (`/readyz` reports it), a pooler that leads to a standby, and a session that PostgreSQL has just ended.
_OUTAGES = (
    psycopg.errors.UndefinedTable,
    psycopg.errors.ReadOnlySqlTransaction,
    psycopg.errors.IdleInTransactionSessionTimeout,
    psycopg.errors.TransactionTimeout,
)


def is_away(error: Exception) -> bool:
    """Tell whether PostgreSQL could not be reached, the connection broke, or no connection was free."""
    if isinstance(error, DBAPIError):
        is_outage = isinstance(error, OperationalError) or isinstance(error.orig, _OUTAGES)
        return is_outage or is_lost(error)
    return isinstance(error, PoolTimeout)


def is_lost(error: Exception) -> bool:
    """Tell whether a connection that had been made was lost."""
    return isinstance(error, DBAPIError) and error.connection_invalidated


def is_unreachable(error: Exception) -> bool:
    """Tell whether no connection could be made: only PostgreSQL itself gives an error a SQLSTATE."""
    if isinstance(error, OperationalError):
        return not is_lost(error) and getattr(error.orig, "sqlstate", None) is None
    return isinstance(error, PoolTimeout)


def is_locked_out(error: Exception) -> bool:
    """Tell whether a statement gave up waiting for a lock."""
    return isinstance(error, DBAPIError) and isinstance(error.orig, psycopg.errors.LockNotAvailable)


def is_without_partition(error: Exception) -> bool:
    """Tell whether a row has no partition to go to; any other check that a row fails has a name."""
    if not isinstance(error, DBAPIError) or not isinstance(error.orig, psycopg.errors.CheckViolation):
        return False
    return error.orig.diag.constraint_name is None


def release_of_server(connection: Connection) -> str:
    """Return PostgreSQL's release, such as `18.1`."""
    release: str = connection.execute(text("SHOW server_version")).scalar_one()
    return release.split(maxsplit=1)[0]


def has_tables(connection: Connection) -> bool:
    """Tell whether the database has the service's tables."""
    return connection.execute(text("SELECT to_regclass('batches')")).scalar_one() is not None


@contextmanager
def transaction(*, by: Author | None = None) -> Iterator[Connection]:
    """Open one transaction (READ COMMITTED): committed when the block ends, rolled back when it raises.

    Functions that take a `connection` never commit. Their callers do, by this function or `single_statement`.

    Args:
        by: for whom it is opened. What is done in it is in the log of actions as theirs.
    """
    with engine().begin() as connection:
        if by is not None:
            connection.execution_options(author=by)
        yield connection


def author_of(connection: Connection) -> Author:
    """Return for whom the transaction of a connection was opened."""
    author: Author = connection.get_execution_options().get("author", NOBODY)
    return author


@contextmanager
def single_statement() -> Iterator[Connection]:
    """Yield a connection that commits after each statement: one round trip instead of three."""
    with engine().connect().execution_options(isolation_level="AUTOCOMMIT") as connection:
        yield connection


@contextmanager
def snapshot() -> Iterator[Connection]:
    """Open a read-only transaction (REPEATABLE READ): all its statements see the same state.

    What is built from several statements is read in one; a batch may be issued between two of a `transaction`.
    """
    with engine().connect() as connection, snapshot_on(connection):
        yield connection


@contextmanager
def snapshot_on(connection: Connection) -> Iterator[None]:
    """Open such a transaction on a connection that is in none."""
    connection.execution_options(isolation_level="REPEATABLE READ", postgresql_readonly=True)
    with connection.begin():
        # Before the first look: of a partition that is swapped for its copy meanwhile, it would see nothing.
        connection.execute(text("LOCK TABLE transactions IN ACCESS SHARE MODE"))
        yield


def steps(step: Callable[[Connection], int], *, steps_max: int, full: int = 1) -> int:
    """Do a long piece of work in steps, each in its own transaction; return how much they have done together.

    Args:
        step: does a part of the work, and returns how much.
        steps_max: the most steps. What is left after them waits for the next run.
        full: a step that does less than this was the last.
    """
    done = 0
    for _ in range(steps_max):
        with transaction() as connection:
            did = step(connection)
        done += did
        if did < full:
            break
    return done


def row_with_id(connection: Connection, statement: TextClause, parameters: Mapping[str, Any], noun: str) -> Row[Any]:
    """Return the row of a statement, which looks for the id `parameters["id"]`.

    Raises:
        NotFound: there is no such row.
    """
    row_id = parameters["id"]
    require_id(noun, row_id)
    row = connection.execute(statement, parameters).one_or_none()
    if row is None:
        raise NotFound(noun, row_id)
    return row


def row_to(kind: Callable[..., _T], row: Row[Any]) -> _T:
    """Make a value from a row whose columns have the names of its fields.

    A NamedTuple whose fields are the columns in order is made by its `_make`, which is faster for thousands of rows.
    """
    return kind(**row._asdict())


def shown_sum(points: str) -> str:
    """Word in SQL a sum of points over several batches that is only read, and moves none: cut at 64 bits.

    No balance holds more, and whoever reads JSON needs no larger numbers. A sum within a batch always fits.
    """
    return f"CAST(least(coalesce(sum({points}), 0), {INT64_MAX}) AS bigint)"


def fetch_all(
    connection: Connection, statement: bytes, parameters: Mapping[str, Any], *, binary: bool = False
) -> list[tuple[Any, ...]]:
    """Run a statement by psycopg's own `execute`, in the connection's transaction, and return its rows.

    Only for what runs with every send or several times a second, where SQLAlchemy's `execute` takes longer than
    PostgreSQL (decision 12), and for answers of thousands of rows. All else is a `text` of SQLAlchemy, with `:name`.

    Args:
        statement: its parameters are written `%(name)s`. It is prepared at first use, unless the connection leads to a
            pooler.
        binary: ask for values in PostgreSQL's binary form; worth it for thousands of rows.

    Raises:
        DBAPIError: as from SQLAlchemy's `execute`.
    """
    driver = psycopg_connection(connection)
    try:
        return driver.execute(statement, parameters, prepare=True, binary=binary).fetchall()
    except psycopg.Error as error:
        raise _error_of_sqlalchemy(connection, driver, error) from error


def copied(connection: Connection, query: str, options: str, parameters: Mapping[str, Any]) -> Iterator[bytes]:
    """Yield the rows of a query as `COPY` writes them with these options, each with its line end.

    The quickest way out of PostgreSQL: neither SQLAlchemy nor psycopg makes values of what is only passed on.

    Args:
        query: a SELECT as for `text`, with parameters written `:name`.

    Raises:
        DBAPIError: as from SQLAlchemy's `execute`.
    """
    driver = psycopg_connection(connection)
    # COPY takes no parameters, so psycopg writes them into the statement, quoted.
    statement = f"COPY ({text(query).compile(dialect=connection.dialect)}) TO STDOUT ({options})".encode()
    try:
        with driver.cursor() as cursor, cursor.copy(statement, parameters) as rows:
            yield from map(bytes, rows)
    except psycopg.Error as error:
        raise _error_of_sqlalchemy(connection, driver, error) from error


def _error_of_sqlalchemy(
    connection: Connection, driver: psycopg.Connection[Any], error: psycopg.Error
) -> BaseException:
    """Return an error of psycopg as SQLAlchemy raises it."""
    if driver.closed:
        connection.invalidate(error)
    return DBAPIError.instance(None, None, error, psycopg.Error, connection_invalidated=driver.closed)


def digest(columns: Sequence[str], of: str, **new: str) -> str:
    """Word in SQL a digest over columns of a row.

    Args:
        of: the alias of the row.
        new: expressions in place of columns, for a statement that sets them.
    """
    values = ", ".join(_as_text(column, new.get(column, f"{of}.{column}")) for column in columns)
    return f"sha256(convert_to(CAST(ROW({values}) AS text), 'UTF8'))"


def _as_text(column: str, value: str) -> str:
    """Word a value so that its text does not depend on settings of the session, such as the time zone."""
    if column.endswith("_at"):
        return f"extract(epoch FROM CAST({value} AS timestamptz))"
    if column.endswith("_hash"):
        return f"encode(CAST({value} AS bytea), 'hex')"
    return value
