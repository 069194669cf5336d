"""What all tests share: an environment of their own, and the servers they start themselves."""

import gc
import os
import signal
import subprocess
from collections.abc import Iterator, MutableMapping
from dataclasses import dataclass
from typing import Any

import pytest
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
from tests.contract.postgresql import older_postgresql
from tests.deadline import TIMEOUT_S, comes_true
from tests.service.inside import Service
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


def forget_everything() -> None:
    """Drop what a process keeps for its life: settings, connections, the Redis client."""
    for engine in (connections._engine, connections._standby_engine):
        if engine is not None:
            _until_given_back(engine.pool)
            engine.dispose()
    discard_inherited_connections()
    standby._left_alone_until = 0.0
    settings.cache_clear()
    if process_redis.redis.cache_info().currsize:
        process_redis.redis().close()
    process_redis.redis.cache_clear()
    _left_alone_until.clear()
    process_redis._left_alone_until = 0.0
    clear_contextvars()


def _until_given_back(pool: Pool) -> None:
    """Wait until no thread of the last test reads any more: a dropped pool closes nothing that comes back."""
    assert isinstance(pool, QueuePool)
    if pool.checkedout() and not comes_true(lambda: pool.checkedout() == 0, within_s=2):
        gc.collect()  # Of an answer that nobody has read to its end.


@pytest.fixture(autouse=True)
def environment(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """Give each test the default settings, and addresses where nothing listens."""
    for name in list(os.environ):
        if name.startswith("POINTS_"):
            monkeypatch.delenv(name)
    monkeypatch.delenv("DATABASE_READ_URL", raising=False)
    for name, value in _NOWHERE.items():
        monkeypatch.setenv(name, value)
    forget_everything()
    yield
    forget_everything()


@dataclass(frozen=True, kw_only=True)
class Servers:
    database_url: str
    redis_url: str


@pytest.fixture
def events() -> Iterator[list[MutableMapping[str, Any]]]:
    """Collect what our own modules log during a test: `event`, `log_level` and the fields of each line."""
    with capture_logs(processors=[merge_contextvars]) as collected:
        yield collected


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
        assert cache.answers(within_s=TIMEOUT_S)
        yield Servers(database_url=server.url(), redis_url=cache.url())
    finally:
        process.terminate()
        process.wait()
        server.stop()


@pytest.fixture(scope="session")
def service(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Service]:
    """Run a whole service, one for all tests of this process that break nothing of it."""
    folder = tmp_path_factory.mktemp("service") / "data"
    with older_postgresql() as settings, Service(folder, **settings).running() as running:
        yield running


@pytest.fixture(name="database")
def _database(servers: Servers, monkeypatch: pytest.MonkeyPatch) -> None:
    """Give a test the real PostgreSQL, its tables empty and its ids starting at 1."""
    monkeypatch.setenv("DATABASE_URL", servers.database_url)
    forget_everything()
    with transaction() as connection:
        connection.exec_driver_sql(EMPTY)


@pytest.fixture
def broker(servers: Servers, monkeypatch: pytest.MonkeyPatch) -> None:
    """Give a test the real Valkey, empty."""
    monkeypatch.setenv("REDIS_URL", servers.redis_url)
    forget_everything()
    process_redis.redis().flushdb()
