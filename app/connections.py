"""This process's connections to PostgreSQL: the engine that keeps them, and how long each of their waits may last."""

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
# A server that is frozen ends nothing any more: then we give up, when it would long have ended the statement.
ANSWER_TIMEOUT_S = STATEMENT_TIMEOUT_MS / 1_000 + 2
# Callers wait for the front, whose statements are short: it gives up sooner, and answers 503.
FRONT_ANSWER_TIMEOUT_S = 10.0
# How soon a server notices that whoever asked is gone, and lets go of the locks that a killed process wanted.
CLIENT_CHECK_INTERVAL_MS = 2_000

_engine: Engine | None = None
_answer_timeout_s: float | None = None
_serves = False
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
                must_write=_serves,
            )
        return _engine


def serve(*, answer_timeout_s: float | None = None) -> None:
    """Call in a process that answers callers or issues, before it connects: a server must take what it writes.

    While a name leads to a standby, as it may for a moment after a failover, PostgreSQL is out of reach for it. Else it
    would keep that connection, which answers well and refuses every write, long after the name leads elsewhere.

    Args:
        answer_timeout_s: how long a silent server is waited for, if not as long as usual: callers wait for the front.
    """
    global _answer_timeout_s, _serves
    _answer_timeout_s, _serves = answer_timeout_s, True


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
        # A plan that was made while a table had a few rows is kept while it grows to thousands, and to read it whole is
        # what was best then. All but who reads everything (`app.database.snapshot`) look rows up in indexes; and where
        # there is no other way, it shall not be taken for so costly that it is compiled first.
        "enable_seqscan": "off",
        "jit": "off",
    }


def new_engine(url: str, *, pool_size: int, pooler: bool = False, must_write: bool = False) -> Engine:
    """Make an engine whose connections give up in time and whose errors repeat no values.

    Args:
        url: a `postgresql://` address, with SQLAlchemy's word for the driver in it or without.
        pool_size: connections held at the most.
        pooler: whether a server's connection is given to each transaction anew, as PgBouncer does it.
        must_write: whether a server that only reads is none; the address may say otherwise (`target_session_attrs`).
    """
    address = make_url(url).set(drivername="postgresql+psycopg")
    says_which = "target_session_attrs" in address.query
    begins_with = ["-c {}={}".format(name, value.replace(" ", r"\ ")) for name, value in session_settings().items()]
    options = " ".join([*begins_with, str(address.query.get("options", ""))])  # What the address itself asks for wins.
    made = create_engine(
        address,
        pool_size=pool_size,
        max_overflow=0,
        pool_timeout=10,
        # Values in an error message would be addresses in a log.
        hide_parameters=True,
        connect_args={
            "connect_timeout": CONNECT_TIMEOUT_S,
            "tcp_user_timeout": 10_000,
            "keepalives_idle": 30,
            "keepalives_interval": 10,
            "keepalives_count": 3,
            "application_name": "points",
            # Whatever the database or PGCLIENTENCODING says: what goes there in an exchange is UTF-8.
            "client_encoding": "utf8",
            **({"target_session_attrs": "read-write"} if must_write and not says_which else {}),
            # What a session keeps, a pooler would give to the next one: there the limits stand in its own
            # configuration (deploy/pgbouncer.ini), and no statement is prepared.
            **({"prepare_threshold": None} if pooler else {"options": options}),
        },
    )
    event.listen(made, "do_connect", _connect)
    event.listen(made, "checkout", _hand_out)
    return made


def _connect(_dialect: Any, _record: Any, arguments: Any, options: Any) -> TimedConnection:
    return TimedConnection.connect(*arguments, **options)


def _hand_out(connection: TimedConnection, _record: Any, _fairy: Any) -> None:
    """Limit a connection that leaves the pool; one that a restarted server has dropped makes room for another.

    That one is new and given away as it is. Should it be dead already, its first statement says so as every other
    would; SQLAlchemy, were it told here, would try a third time and then raise something that is no outage.
    """
    if connection.was_used and is_dead(connection):
        raise DisconnectionError
    connection.was_used = True
    connection.patience_s = _answer_timeout_s or ANSWER_TIMEOUT_S


def wait_without_end(connection: Connection) -> None:
    """Lift our own limit of a connection until it is back in the pool, for who lifts the server's limits as well."""
    _timed(connection).patience_s = None


def wait_at_most(connection: Connection, seconds: float) -> None:
    """Set the limits of what is asked on a connection, the server's for its transaction, ours until it is back."""
    _timed(connection).patience_s = seconds + 1
    connection.execute(text(f"SET LOCAL statement_timeout = {int(seconds * 1_000)}"))


def _timed(connection: Connection) -> TimedConnection:
    timed = connection.connection.driver_connection
    assert isinstance(timed, TimedConnection), "every engine of ours makes these"
    return timed


def forget_connections_of_the_parent() -> None:
    """Call in a forked child: its parent's connections are left open for the parent and never used here.

    Two processes on one connection read each other's answers; 84 of 300 were wrong when it was tried.
    """
    global _engine, _engine_lock  # noqa: PLW0603
    _engine_lock = threading.Lock()  # The parent's may have been held at the fork.
    if _engine is not None:
        _engine.dispose(close=False)
    _engine = None
