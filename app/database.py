"""The way to PostgreSQL: one engine a process, and the one place that commits."""

import threading
from collections.abc import Iterator
from contextlib import contextmanager

from sqlalchemy import Connection, Engine, MetaData, create_engine, make_url
from sqlalchemy.orm import DeclarativeBase

from app.settings import settings

# A constraint that breaks is reported by its name; these make the names say what they guard.
NAMING_CONVENTION = {
    "ix": "ix_%(table_name)s_%(column_0_N_name)s",
    "uq": "uq_%(table_name)s_%(column_0_N_name)s",
    "ck": "ck_%(table_name)s_%(constraint_name)s",
    "fk": "fk_%(table_name)s_%(column_0_name)s",
    "pk": "pk_%(table_name)s",
}

# Nothing waits for ever. A drain of 20,000 recipients takes about a second and a half of this.
STATEMENT_TIMEOUT_MS = 30_000
LOCK_TIMEOUT_MS = 10_000
IDLE_IN_TRANSACTION_TIMEOUT_MS = 30_000
CONNECT_TIMEOUT_S = 3


class Base(DeclarativeBase):
    metadata = MetaData(naming_convention=NAMING_CONVENTION)


_engine: Engine | None = None
_engine_lock = threading.Lock()


def engine() -> Engine:
    """Return this process's engine, made at its first use so that none is made before a fork."""
    global _engine  # noqa: PLW0603  # One engine a process is the point.
    with _engine_lock:
        if _engine is None:
            _engine = new_engine(settings().database_url, pool_size=settings().database_connections_max)
        return _engine


def new_engine(url: str, *, pool_size: int) -> Engine:
    """Make an engine whose connections give up in time and whose errors repeat no values.

    Args:
        url: a `postgresql://` address, with SQLAlchemy's word for the driver in it or without.
        pool_size: connections held at the most.
    """
    address = make_url(url).set(drivername="postgresql+psycopg")
    options = (
        f"-c statement_timeout={STATEMENT_TIMEOUT_MS} -c lock_timeout={LOCK_TIMEOUT_MS}"
        f" -c idle_in_transaction_session_timeout={IDLE_IN_TRANSACTION_TIMEOUT_MS} -c timezone=UTC"
        f" {address.query.get('options', '')}"  # What the address itself asks for comes last, and wins.
    )
    return create_engine(
        address,
        pool_size=pool_size,
        max_overflow=0,
        pool_timeout=10,
        # A connection that a restarted server has dropped is replaced instead of handed out.
        pool_pre_ping=True,
        # Values in an error message would be addresses in a log.
        hide_parameters=True,
        connect_args={
            "connect_timeout": CONNECT_TIMEOUT_S,
            "tcp_user_timeout": 10_000,
            "application_name": "points",
            "options": options,
        },
    )


def forget_connections_of_the_parent() -> None:
    """Call in a forked child: its parent's connections are left open for the parent and never used here.

    Two processes on one connection read each other's answers; 84 of 300 were wrong when it was tried.
    """
    global _engine, _engine_lock  # noqa: PLW0603
    _engine_lock = threading.Lock()  # The parent's may have been held at the fork.
    if _engine is not None:
        _engine.dispose(close=False)
    _engine = None


@contextmanager
def transaction() -> Iterator[Connection]:
    """Open one transaction (READ COMMITTED): committed when the block ends, rolled back when it raises.

    This is the one place that commits. Functions that take a `connection` never do.
    """
    with engine().begin() as connection:
        yield connection


@contextmanager
def snapshot() -> Iterator[Connection]:
    """Open a read-only transaction whose statements all see the same moment (REPEATABLE READ)."""
    options = {"isolation_level": "REPEATABLE READ", "postgresql_readonly": True}
    with engine().connect().execution_options(**options) as connection, connection.begin():
        yield connection
