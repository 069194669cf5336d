"""This process's connections to PostgreSQL: the engine that keeps them, and how long each may wait for an answer."""

import threading
from typing import Any

from sqlalchemy import Connection, Engine, create_engine, event, make_url, text
from sqlalchemy.exc import DisconnectionError
from sqlalchemy.pool import QueuePool

from app.settings import settings
from app.timed_connection import TimedConnection, is_dead

# Nothing waits for ever. A round of a drain, 20,000 recipients, takes a hundredth of this.
STATEMENT_TIMEOUT_MS = 20_000
LOCK_TIMEOUT_MS = 10_000
IDLE_IN_TRANSACTION_TIMEOUT_MS = 15_000
CONNECT_TIMEOUT_S = 3
# A server that is frozen ends no statement: we give up when it would long have done so.
ANSWER_TIMEOUT_S = STATEMENT_TIMEOUT_MS / 1_000 + 2
# Callers wait for the front, whose statements are short: it gives up sooner, and answers 503.
FRONT_ANSWER_TIMEOUT_S = 10.0
# How soon the server notices that a client has died, and releases its locks.
CLIENT_CHECK_INTERVAL_MS = 2_000

_engine: Engine | None = None
_answer_timeout_s = ANSWER_TIMEOUT_S
_writable_only = False
_engine_lock = threading.Lock()


def engine() -> Engine:
    """Return this process's engine, made at its first use so that none is made before a fork."""
    global _engine  # noqa: PLW0603  # One engine a process is the point.
    with _engine_lock:
        if _engine is None:
            _engine = new_engine(
                settings().database_url,
                pool_size=settings().database_connections_max,
                pooler=settings().database_pooler,
                writable_only=_writable_only,
            )
        return _engine


def require_writable_server(*, answer_timeout_s: float = ANSWER_TIMEOUT_S) -> None:
    """Call in a process that accepts or issues, before it connects: it then takes no server that is read-only.

    For a moment after a failover a name may lead to a standby. A connection to one would answer well and refuse
    every write, long after the name leads elsewhere.

    Args:
        answer_timeout_s: how long each answer is waited for.
    """
    global _answer_timeout_s, _writable_only  # As above.
    _answer_timeout_s, _writable_only = answer_timeout_s, True


def connections_in_use() -> int:
    """Return how many connections of this process's engine are in use at this moment."""
    pool = None if _engine is None else _engine.pool
    return pool.checkedout() if isinstance(pool, QueuePool) else 0


def session_settings() -> dict[str, str]:
    """Return what each session of PostgreSQL begins with, whatever the server has for others.

    Behind a pooler its own configuration says the same (deploy/pgbouncer.ini).
    """
    return {
        "statement_timeout": str(STATEMENT_TIMEOUT_MS),
        "lock_timeout": str(LOCK_TIMEOUT_MS),
        "idle_in_transaction_session_timeout": str(IDLE_IN_TRANSACTION_TIMEOUT_MS),
        "client_connection_check_interval": str(CLIENT_CHECK_INTERVAL_MS),
        "timezone": "UTC",
        "default_transaction_isolation": "read committed",
        # A plan made while a table has a few rows reads the table whole, and is kept while it grows to thousands. All
        # statements but those of `app.database.snapshot` find their rows in indexes. Where there is no index, a plan
        # must not seem so costly that it is compiled first.
        "enable_seqscan": "off",
        "jit": "off",
    }


def new_engine(url: str, *, pool_size: int, pooler: bool = False, writable_only: bool = False) -> Engine:
    """Make an engine whose connections give up in time and whose errors repeat no values.

    Args:
        url: a `postgresql://` address, with SQLAlchemy's word for the driver in it or without.
        pool_size: connections held at the most.
        pooler: whether a pooler such as PgBouncer gives each transaction another session of the server.
        writable_only: refuse a server that is read-only; the address may say otherwise (`target_session_attrs`).
    """
    address = make_url(url).set(drivername="postgresql+psycopg")
    arguments: dict[str, Any] = {
        "connect_timeout": CONNECT_TIMEOUT_S,
        "tcp_user_timeout": 10_000,
        "keepalives_idle": 30,
        "keepalives_interval": 10,
        "keepalives_count": 3,
        "application_name": "points",
        "client_encoding": "utf8",
    }
    if writable_only and "target_session_attrs" not in address.query:
        arguments["target_session_attrs"] = "read-write"
    if pooler:
        # The next transaction may have another session: nothing is prepared, and the pooler sets the limits.
        arguments["prepare_threshold"] = None
    else:
        ours = " ".join(
            "-c {}={}".format(name, value.replace(" ", r"\ ")) for name, value in session_settings().items()
        )
        arguments["options"] = f"{ours} {address.query.get('options', '')}"  # The last one wins.
    made = create_engine(
        address,
        pool_size=pool_size,
        max_overflow=0,
        pool_timeout=10,
        hide_parameters=True,  # Values in an error message would be addresses in a log.
        connect_args=arguments,
    )
    event.listen(made, "do_connect", _connect)
    event.listen(made, "checkout", _check_out)
    return made


def _connect(_dialect: Any, _record: Any, arguments: Any, options: Any) -> TimedConnection:
    return TimedConnection.connect(*arguments, **options)


def _check_out(connection: TimedConnection, _record: Any, _fairy: Any) -> None:
    """Set the timeout of a connection that leaves the pool, and replace it if the server has closed it.

    A new connection is not looked at. Were SQLAlchemy told that it is dead too, it would try a third time and then
    raise an error that does not count as an outage; the connection's first statement raises one that does.
    """
    if connection.was_used and is_dead(connection):
        raise DisconnectionError
    connection.was_used = True
    connection.answer_timeout_s = _answer_timeout_s


def disable_timeouts(connection: Connection) -> None:
    """Wait for answers as long as they take, until the connection is back in the pool; the server's limits stay."""
    psycopg_connection(connection).answer_timeout_s = None


def wait_at_most(connection: Connection, seconds: float) -> None:
    """Limit each statement: the server's limit for this transaction, ours until the connection is back in the pool."""
    psycopg_connection(connection).answer_timeout_s = seconds + 1
    connection.execute(text(f"SET LOCAL statement_timeout = {int(seconds * 1_000)}"))


def psycopg_connection(connection: Connection) -> TimedConnection:
    """Return psycopg's own connection, which SQLAlchemy's one stands for."""
    driver = connection.connection.driver_connection
    assert isinstance(driver, TimedConnection), "every engine of ours makes these"
    return driver


def discard_inherited_connections() -> None:
    """Call in a forked child: its parent's connections stay open for the parent, and are never used here.

    Two processes on one connection read each other's answers; 84 of 300 were wrong when it was tried.
    """
    global _engine, _engine_lock  # noqa: PLW0603  # As above.
    _engine_lock = threading.Lock()  # The parent's may have been held at the fork.
    if _engine is not None:
        _engine.dispose(close=False)
    _engine = None
