"""This process's connections to PostgreSQL: the engine that pools them, and their time limits."""

import threading
from typing import Any

from sqlalchemy import Connection, Engine, create_engine, event, make_url, text
from sqlalchemy.exc import DisconnectionError
from sqlalchemy.pool import QueuePool

from app.postgres.timed_connection import StandbyConnection, TimedConnection, is_dead, require_relied_on
from app.settings import settings

# A round of a drain (20,000 recipients) takes a hundredth of this.
STATEMENT_TIMEOUT_MS = 20_000
# Less than the front waits for an answer, so that its caller hears of the lock.
LOCK_TIMEOUT_MS = 8_000
IDLE_IN_TRANSACTION_TIMEOUT_MS = 15_000
CONNECT_TIMEOUT_S = 3
# A frozen server does not end its statements, so the client gives up a little later.
ANSWER_TIMEOUT_S = STATEMENT_TIMEOUT_MS / 1_000 + 2
# The front gives up sooner and answers 503: callers wait for it, and its statements are short.
FRONT_ANSWER_TIMEOUT_S = 10.0
# How soon the server notices a dead client and releases its locks.
CLIENT_CHECK_INTERVAL_MS = 2_000

_engine: Engine | None = None
_standby_engine: Engine | None = None
_answer_timeout_s = ANSWER_TIMEOUT_S
_writable_only = False
_engine_lock = threading.Lock()


def engine() -> Engine:
    """Return this process's engine. It is made at first use, so that none is made before a fork."""
    global _engine  # noqa: PLW0603  # One engine a process is the point.
    with _engine_lock:
        _engine = _engine or _pooled(settings().database_url, writable_only=_writable_only)
        return _engine


def standby_engine() -> Engine:
    """Return this process's engine for the server of `DATABASE_READ_URL`, which is set. It is made at first use."""
    global _standby_engine  # noqa: PLW0603  # As above.
    url = settings().database_read_url
    assert url is not None, "who has no standby does not ask for it"
    with _engine_lock:
        _standby_engine = _standby_engine or _pooled(url, standby=True)
        return _standby_engine


def _pooled(url: str, **more: bool) -> Engine:
    most, pooler = settings().database_connections_max, settings().database_pooler
    return new_engine(url, pool_size=most, pooler=pooler, **more)


def require_writable_server(*, answer_timeout_s: float = ANSWER_TIMEOUT_S) -> None:
    """Make this process refuse read-only servers. Call it in a process that writes, before the first connection.

    Right after a failover, the server's name may still lead to a standby. A connection to a standby stays open and
    refuses every write, even when the name leads to the new primary.

    Args:
        answer_timeout_s: time limit for each answer of the server.
    """
    global _answer_timeout_s, _writable_only  # As above.
    _answer_timeout_s, _writable_only = answer_timeout_s, True


def connections_in_use() -> int:
    """Return how many connections of this process are in use now."""
    pool = None if _engine is None else _engine.pool
    return pool.checkedout() if isinstance(pool, QueuePool) else 0


def session_settings() -> dict[str, str]:
    """Return the settings of each PostgreSQL session, whatever those of its database and its role are.

    A pooler sets the same ones itself (deploy/pgbouncer.ini).
    """
    return {
        "statement_timeout": str(STATEMENT_TIMEOUT_MS),
        "lock_timeout": str(LOCK_TIMEOUT_MS),
        "idle_in_transaction_session_timeout": str(IDLE_IN_TRANSACTION_TIMEOUT_MS),
        "client_connection_check_interval": str(CLIENT_CHECK_INTERVAL_MS),
        # psycopg reads times and intervals in these styles alone, and writes a None within a list as NULL.
        "datestyle": "ISO, MDY",
        "intervalstyle": "postgres",
        "array_nulls": "on",
        "timezone": "UTC",
        "standard_conforming_strings": "on",
        "search_path": "public",
        "default_transaction_isolation": "read committed",
        # PostgreSQL keeps prepared plans. One that was made for a nearly empty table would read the whole table, even
        # when it has grown. Every statement but those of an audit finds its rows by an index.
        # Without sequential scans some plans look so costly that PostgreSQL would compile them, hence `jit`.
        "enable_seqscan": "off",
        "jit": "off",
    }


def new_engine(
    url: str, *, pool_size: int, pooler: bool = False, writable_only: bool = False, standby: bool = False
) -> Engine:
    """Make an engine whose connections have time limits and whose errors repeat no values.

    Args:
        url: a `postgresql://` address, with or without SQLAlchemy's name of the driver.
        pool_size: upper limit of connections.
        pooler: whether a pooler such as PgBouncer may give each transaction another session of the server.
        writable_only: refuse a read-only server, unless the address sets `target_session_attrs` itself.
        standby: when a connection of it times out, those to the primary are not replaced for it.
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
        # Each transaction may use another session: nothing is prepared, and the pooler sets all the settings.
        arguments["prepare_threshold"] = None
    else:
        ours = " ".join(
            "-c {}={}".format(name, value.replace(" ", r"\ ")) for name, value in session_settings().items()
        )
        arguments["options"] = f"{ours} {address.query.get('options', '')}"  # The last wins.
    made = create_engine(
        address,
        pool_size=pool_size,
        max_overflow=0,
        pool_use_lifo=True,  # Few connections do most of the work: each keeps plans of its own in the server.
        pool_timeout=10,
        hide_parameters=True,  # Values in an error message would be addresses in a log.
        connect_args=arguments,
    )
    event.listen(made, "do_connect", _connect_to_standby if standby else _connect_by_pooler if pooler else _connect)
    event.listen(made, "checkout", _check_out)
    return made


def _connect(_dialect: Any, _record: Any, arguments: Any, options: Any) -> TimedConnection:
    return TimedConnection.connect(*arguments, **options)


def _connect_by_pooler(_dialect: Any, _record: Any, arguments: Any, options: Any) -> TimedConnection:
    return _looked_at(TimedConnection.connect(*arguments, **options))


def _connect_to_standby(_dialect: Any, _record: Any, arguments: Any, options: Any) -> TimedConnection:
    connection = StandbyConnection.connect(*arguments, **options)
    return _looked_at(connection) if settings().database_pooler else connection


def _looked_at(connection: TimedConnection) -> TimedConnection:
    """Check what the session is set to, because a pooler forgets what is set on it.

    Raises:
        WrongSession: it lacks what the code relies on.
    """
    try:
        connection.answer_timeout_s = _answer_timeout_s
        connection.autocommit = True
        require_relied_on(connection)
        connection.autocommit = False
    except BaseException:
        connection.close()
        raise
    return connection


def _check_out(connection: TimedConnection, _record: Any, _fairy: Any) -> None:
    """Set the timeout of a connection that leaves the pool, and replace it if the server has closed it.

    A new connection is not checked: after two dead ones SQLAlchemy would raise an error that does not count as an
    outage. If a new connection is dead, its first statement raises an error that does.
    """
    if connection.was_used and is_dead(connection):
        raise DisconnectionError
    connection.was_used = True
    connection.answer_timeout_s = _answer_timeout_s


def disable_timeouts(connection: Connection) -> None:
    """Wait for answers without limit until the connection is back in the pool. The server's limits still apply."""
    psycopg_connection(connection).answer_timeout_s = None


def wait_at_most(connection: Connection, seconds: float) -> None:
    """Limit each statement: in the server for this transaction, in the client until the connection is back."""
    psycopg_connection(connection).answer_timeout_s = seconds + 1
    connection.execute(text(f"SET LOCAL statement_timeout = {int(seconds * 1_000)}"))


def psycopg_connection(connection: Connection) -> TimedConnection:
    """Return the psycopg connection inside SQLAlchemy's."""
    driver = connection.connection.driver_connection
    assert isinstance(driver, TimedConnection), "`new_engine` makes only these"
    return driver


def discard_inherited_connections() -> None:
    """Drop the parent's connections without closing them. Call it in a forked child.

    Two processes on one connection read each other's answers: in a trial 84 of 300 were wrong.
    """
    global _engine, _standby_engine, _engine_lock  # noqa: PLW0603  # As above.
    _engine_lock = threading.Lock()  # The parent's may have been held at the fork.
    for inherited in (_engine, _standby_engine):
        if inherited is not None:
            inherited.dispose(close=False)
    _engine = _standby_engine = None
