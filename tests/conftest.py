"""What all tests share: an environment of their own, and the servers they start themselves."""

import gc
import os
import signal
import subprocess
from collections.abc import Callable, Iterator, MutableMapping
from contextlib import contextmanager
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path
from typing import Any

import pytest
from flask import Flask
from redis import Redis
from sqlalchemy import Engine
from sqlalchemy.pool import Pool, QueuePool
from structlog.contextvars import clear_contextvars, merge_contextvars
from structlog.testing import capture_logs

import app.metrics  # noqa: F401  # Before prometheus_client, as in a web process.
from app.ledger.drain import _left_alone_until
from app.local.datadir import DataDir
from app.local.postgresql import PostgreSQL
from app.local.valkey import Valkey
from app.messaging import process_redis
from app.postgres import connections, standby
from app.postgres.connections import discard_inherited_connections
from app.postgres.database import transaction
from app.settings import settings
from app.web.application import create_app
from tests.contract.postgresql import PROGRAMS, older_postgresql
from tests.deadline import TIMEOUT_S, comes_true
from tests.service.inside import Service
from tests.service.run import of_the_run
from tests.service.shared import shared, whole
from tests.service.template import copy_to
from tests.tables import EMPTY

pytest_plugins = ["tests.running_order"]

# Nothing listens here; a test that needs a server asks for `database` or `broker`.
_NOWHERE = {"DATABASE_URL": "postgresql://nobody@127.0.0.1:1/none", "REDIS_URL": "redis://127.0.0.1:1/0"}

# Background jobs inherit SIGINT=ignored; restore it so that tests can interrupt child processes.
if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:
    signal.signal(signal.SIGINT, signal.default_int_handler)
# `nohup` does the same for a terminal that goes away. A handler that does nothing is not inherited as “ignored”:
# so the tests outlive the terminal, and the programs that they hang up end.
if signal.getsignal(signal.SIGHUP) is signal.SIG_IGN:
    signal.signal(signal.SIGHUP, lambda *_: None)


# The engine of the database that most tests use: its statements are compiled, and its connections open.
_kept: list[Engine] = []


def forget_everything() -> None:
    """Drop what a process keeps for its life: settings, connections, the Redis client."""
    _forget(closing=True)


def _forget(*, closing: bool) -> None:
    for engine in (connections._engine, connections._standby_engine):
        if engine is not None and (not _are_given_back(engine.pool) or closing or engine not in _kept):
            engine.dispose()
    if connections._engine in _kept:
        connections._engine = None  # Otherwise its connections would be dropped as if inherited.
    discard_inherited_connections()
    standby._left_alone_until = 0.0
    settings.cache_clear()
    if process_redis.redis.cache_info().currsize:
        process_redis.redis().close()
    process_redis.redis.cache_clear()
    _left_alone_until.clear()
    process_redis._left_alone_until = 0.0
    clear_contextvars()


def _are_given_back(pool: Pool) -> bool:
    """Wait until no thread of the last test reads any more: a dropped pool closes nothing that comes back."""
    assert isinstance(pool, QueuePool)
    if pool.checkedout() and not comes_true(lambda: pool.checkedout() == 0, within_s=2):
        gc.collect()  # Of an answer that nobody has read to its end.
    return pool.checkedout() == 0


@pytest.fixture(autouse=True)
def environment(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """Give each test the default settings, and addresses where nothing listens."""
    for name in list(os.environ):
        if name.startswith("POINTS_"):
            monkeypatch.delenv(name)
    monkeypatch.delenv("DATABASE_READ_URL", raising=False)
    for name, value in _NOWHERE.items():
        monkeypatch.setenv(name, value)
    _forget(closing=False)
    yield
    _forget(closing=False)


def shared_app() -> Flask:
    """Return the application of the settings as they are. Its routes and pages are compiled once."""
    return _app_of(settings().redis_url, settings().rate_limit)


@lru_cache
def _app_of(_redis_url: str, _rate_limit: str) -> Flask:
    return create_app()  # It reads no other setting before the first request.


@dataclass(frozen=True, kw_only=True)
class Servers:
    database_url: str
    redis_url: str


@pytest.fixture
def events() -> Iterator[list[MutableMapping[str, Any]]]:
    """Collect what our own modules log during a test: `event`, `log_level` and the fields of each line."""
    with capture_logs(processors=[merge_contextvars]) as collected:
        yield collected


def may_empty_tables(server: PostgreSQL) -> None:
    """Let the service's role delete rows past their triggers, as `tests.tables` does."""
    with server._connect_as_superuser() as connection:
        connection.execute("GRANT SET ON PARAMETER session_replication_role TO points")


@pytest.fixture(scope="session")
def servers(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Servers]:
    """Start a real PostgreSQL, migrated, and a real Valkey, once for all tests."""
    folder = tmp_path_factory.mktemp("servers") / "data"
    copy_to(folder)
    datadir = DataDir(folder)
    server, cache = PostgreSQL(datadir), Valkey(datadir)
    server.prepare()
    server.start_detached()
    cache.prepare()
    process = subprocess.Popen(cache.command(), stdout=subprocess.DEVNULL)
    try:
        server.wait_until_ready()
        may_empty_tables(server)
        assert cache.answers(within_s=TIMEOUT_S)
        yield Servers(database_url=server.url(), redis_url=cache.url())
    finally:
        process.terminate()
        process.wait()
        server.stop()


@pytest.fixture(scope="session")
def service(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Service]:
    """Run a whole service, one for all tests that break nothing of it, in whichever process they run."""
    with older_postgresql() as database, shared(_folder(tmp_path_factory, "service"), Service, **database) as running:
        yield running


_NARROW = {
    "POINTS_WAIT_S": "2",
    "POINTS_KEEP_ALIVE_S": "3",
    "POINTS_RATE_LIMIT": "300/minute",
    "POINTS_RECIPIENTS_MAX": "2000",
    "POINTS_AMOUNT_MAX": str(2**62),
    "POINTS_ALLOW_REPEATS": "true",
    "POINTS_BODY_BYTES_MAX": "200000",
    "POINTS_SANDBOX_BALANCE": "77",
}


@pytest.fixture(scope="session")
def _narrow(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Service]:
    folder = _folder(tmp_path_factory, "narrow")
    with older_postgresql() as database, shared(folder, Service, **_NARROW, **database) as running:
        yield running


@contextmanager
def _narrow_alone(narrow: Service, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Service]:
    with whole(_folder(tmp_path_factory, "narrow")):
        if narrow.pid is None:  # Killed by a test that went wrong.
            narrow.start()
        yield narrow


@pytest.fixture
def narrow(_narrow: Service, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Service]:
    """Give a test alone a service with settings of its own, whose parts it may stop and kill."""
    with _narrow_alone(_narrow, tmp_path_factory) as running:
        yield running


@pytest.fixture(scope="module")
def narrow_of_a_file(_narrow: Service, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Service]:
    """Give it to all tests of a file, alone, which then take it by this name only."""
    with _narrow_alone(_narrow, tmp_path_factory) as running:
        yield running


def _folder(tmp_path_factory: pytest.TempPathFactory, name: str) -> Path:
    # A server of another version is this process's own, and so are the services on it.
    name += os.environ.get("PYTEST_XDIST_WORKER", "") if PROGRAMS else ""
    return of_the_run(tmp_path_factory.getbasetemp(), name)


@pytest.fixture
def reached(servers: Servers, monkeypatch: pytest.MonkeyPatch) -> None:
    """Have everything of ours use the real PostgreSQL, whatever its tables hold."""
    monkeypatch.setenv("DATABASE_URL", servers.database_url)
    _forget(closing=False)
    if not _kept:
        _kept.append(connections.engine())
    connections._engine = _kept[0]


@pytest.fixture(name="database")
def _database(reached: None) -> None:
    """Give a test the real PostgreSQL, its tables empty and its ids starting at 1."""
    _fill(None)


# Who has written the rows that the tests before have left as they were.
_written_by: list[Callable[[], None] | None] = [None]


def _fill(write: Callable[[], None] | None) -> None:
    _written_by[0] = None
    with transaction() as connection:
        connection.exec_driver_sql(EMPTY)
    if write is not None:
        write()
        _written_by[0] = write


@pytest.fixture
def given(reached: None) -> Callable[[Callable[[], None]], None]:
    """Give a test that changes nothing rows that are written once for all such tests in a row."""

    def give(write: Callable[[], None]) -> None:
        if _written_by[0] is not write:
            _fill(write)

    return give


@pytest.fixture
def broker(servers: Servers, monkeypatch: pytest.MonkeyPatch) -> None:
    """Give a test the real Valkey, empty."""
    monkeypatch.setenv("REDIS_URL", servers.redis_url)
    settings.cache_clear()
    process_redis.redis.cache_clear()
    with Redis.from_url(servers.redis_url) as patient:  # The service's own client gives up within a second or two.
        patient.flushdb()
