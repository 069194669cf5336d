"""Long reads: a standby answers them when it has all that callers may have seen, else the primary (decision 30).

This is the only place that decides which server a read goes to. Without `DATABASE_READ_URL` it is the primary, at no
cost. With it, a read asks the primary how far it is, waits a moment until the standby is as far, and then reads there.
Whatever goes wrong with the standby, the read is begun again on the primary.
"""

import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import NamedTuple, TypeVar

import psycopg
from sqlalchemy import Connection, text
from sqlalchemy.exc import DBAPIError, SQLAlchemyError

from app import logs
from app.postgres.connections import new_engine, psycopg_connection, standby_engine, wait_at_most
from app.postgres.database import is_away, single_statement, snapshot, snapshot_on
from app.settings import settings

_T = TypeVar("_T")

# How long a read waits for a standby that is a little behind, and how often it looks.
_PATIENCE_S = 1.0
_PAUSE_S = 0.01
# A standby that is frozen answers nothing.
_LOOK_TIMEOUT_S = 2.0
# How long a standby is left alone that is away, too far behind, or none: meanwhile no read waits for it.
_LEFT_ALONE_S = 10.0

# What the primary has removed, and a read on the standby still needs.
_CONFLICTS = (psycopg.errors.SerializationFailure, psycopg.errors.DeadlockDetected)

_left_alone_until = 0.0

_log = logs.logger()


class _NotFit(Exception):
    """The standby is none of this primary any more, or too far behind. The message is the reason."""


def long_read(read: Callable[[Connection], _T]) -> _T:
    """Do a read that may take long, in a `snapshot`. It sees all that has been committed when it begins.

    Args:
        read: may be begun anew, after any of its statements and after its last: it changes nothing but by what it
            returns.
    """
    position = _position() if _may_ask() else None
    if position is not None:
        try:
            with _caught_up(position) as connection:
                return read(connection)
        except _NotFit as reason:
            _leave_alone(str(reason))
        except SQLAlchemyError as error:
            if not is_away(error):
                raise
            _begin_anew(error)
    with snapshot() as connection:
        return read(connection)


def _may_ask() -> bool:
    return settings().database_read_url is not None and time.monotonic() >= _left_alone_until


class _Position(NamedTuple):
    """How far the primary is: what was committed is in its log up to here.

    `server` names its data; with each promotion begins a `timeline` of it, on which positions have another meaning.
    """

    server: int
    timeline: int
    written: str


def _position() -> _Position | None:
    """Ask the primary how far it is. None: what DATABASE_URL leads to is a standby itself."""
    try:
        with single_statement() as connection:
            return _Position(*connection.execute(_POSITION).one())
    except DBAPIError as error:
        if isinstance(error.orig, psycopg.errors.ObjectNotInPrerequisiteState):
            return None
        raise


@contextmanager
def _caught_up(position: _Position) -> Iterator[Connection]:
    """Open the standby for a read once it is as far as the primary was.

    Raises:
        _NotFit: it is not, or is no standby of this primary.
    """
    with standby_engine().connect() as connection:
        # Outside of the read's transaction: a snapshot would be that of the first look.
        connection.execution_options(isolation_level="AUTOCOMMIT")
        driver = psycopg_connection(connection)
        answer_timeout_s, driver.answer_timeout_s = driver.answer_timeout_s, _LOOK_TIMEOUT_S
        give_up_at = time.monotonic() + _PATIENCE_S
        while (state := _look(connection, position)).lag_bytes > 0:
            if time.monotonic() > give_up_at:
                raise _NotFit(f"it is {state.lag_bytes} bytes behind")
            time.sleep(_PAUSE_S)
        connection.commit()
        driver.answer_timeout_s = answer_timeout_s
        with snapshot_on(connection):
            yield connection


class State(NamedTuple):
    """How far a standby is behind: in bytes of the primary's log, and how old the last it has is."""

    lag_bytes: int
    lag_s: float
    release: str


def _look(connection: Connection, position: _Position) -> State:
    """Ask a standby how far it is behind a position of the primary.

    Raises:
        _NotFit: it is no standby, or that of another primary.
    """
    row = connection.execute(_STATE, {"written": position.written}).one()
    if row.server != position.server:
        raise _NotFit("it does not follow the server of DATABASE_URL")
    if row.is_standby and row.timeline != position.timeline:
        raise _NotFit("it follows what was the primary before, or has followed the present one for minutes only")
    if not row.is_standby:
        raise _NotFit("it is none any more, and takes writes of its own")
    return State(row.lag_bytes, row.lag_s if row.lag_bytes > 0 else 0.0, row.release)


def _begin_anew(error: SQLAlchemyError) -> None:
    """Note why a read is begun anew. A standby that breaks a read off to follow further is as good for the next."""
    if isinstance(error, DBAPIError) and isinstance(error.orig, _CONFLICTS):
        _log.info("read_begun_anew", **logs.kind_of(error))
    else:
        _leave_alone(" ".join(map(str, logs.kind_of(error).values())))


def _leave_alone(reason: str) -> None:
    global _left_alone_until  # noqa: PLW0603  # One standby a process is the point.
    _left_alone_until = time.monotonic() + _LEFT_ALONE_S
    _log.warning("standby_left_alone", reason=reason, seconds=_LEFT_ALONE_S)


def state_of_standby(*, timeout_s: float) -> State | str | None:
    """Return how far the standby is behind, or in words what is wrong with it; None: there is to be none.

    It opens connections of its own, for who looks at a service that may be in trouble.

    Raises:
        SQLAlchemyError: the primary is out of reach.
    """
    read_url = settings().database_read_url
    if read_url is None:
        return None
    position = _ask(settings().database_url, lambda primary: _Position(*primary.execute(_POSITION).one()), timeout_s)
    try:
        return _ask(read_url, lambda connection: _look(connection, position), timeout_s)
    except _NotFit as reason:
        return str(reason)
    except SQLAlchemyError:
        return "it does not answer"


def _ask(url: str, question: Callable[[Connection], _T], timeout_s: float) -> _T:
    engine = new_engine(url, pool_size=1, pooler=settings().database_pooler)
    try:
        with engine.begin() as connection:
            wait_at_most(connection, timeout_s)
            return question(connection)
    finally:
        engine.dispose()


# What callers have seen was flushed before. The name of a file of the log begins with its timeline.
_POSITION = text("""
    SELECT system_identifier, CAST(CAST('x' || left(pg_walfile_name(written), 8) AS bit(32)) AS int),
           CAST(written AS text)
    FROM pg_control_system(), pg_current_wal_flush_lsn() written
""")
_STATE = text("""
    SELECT system_identifier AS server, (SELECT timeline_id FROM pg_control_checkpoint()) AS timeline,
           pg_is_in_recovery() AS is_standby,
           CAST(greatest(CAST(:written AS pg_lsn) - coalesce(pg_last_wal_replay_lsn(), '0/0'), 0) AS bigint)
               AS lag_bytes,
           CAST(greatest(extract(epoch FROM clock_timestamp() - pg_last_xact_replay_timestamp()), 0) AS float) AS lag_s,
           split_part(current_setting('server_version'), ' ', 1) AS release
    FROM pg_control_system()
""")
