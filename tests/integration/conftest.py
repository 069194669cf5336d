"""What some tests share: the application, many connections, proxies, a real worker, a bare server, and a proof."""

import subprocess
import sys
import threading
from collections.abc import Callable, Iterator, MutableMapping
from contextlib import contextmanager, suppress
from importlib import import_module
from types import ModuleType
from typing import Any
from urllib.parse import quote

import psutil
import psycopg
import pytest
from celery import Celery
from flask import Flask
from redis.exceptions import RedisError
from sqlalchemy import URL, Engine, make_url

import migrations
from app.api.sending import send_path, waiting
from app.local.datadir import DataDir
from app.local.postgresql import PostgreSQL
from app.messaging import process_redis
from app.messaging.requests import Drains
from app.postgres.connections import LOCK_TIMEOUT_MS, connections_in_use, engine, new_engine
from app.settings import settings
from tests.conftest import Servers, forget_everything, may_empty_tables, shared_app
from tests.crash.proxy import Proxy
from tests.deadline import TIMEOUT_S, until
from tests.integration import books, workers
from tests.integration.visitors import Visitor, visitor
from tests.ports import free_port
from tests.service.template import copy_to


@pytest.fixture(autouse=True)
def _patient_drains(monkeypatch: pytest.MonkeyPatch) -> None:
    """Have drains wait for a held row, and take their turn, as long as it takes on a crowded machine."""
    monkeypatch.setattr("app.ledger.issue._LOCK_TIMEOUT_MS", LOCK_TIMEOUT_MS)
    monkeypatch.setattr("app.ledger.drain._TURN_S", TIMEOUT_S)


@pytest.fixture
def app(database: None) -> Flask:
    return shared_app()


@pytest.fixture
def ann(app: Flask) -> Visitor:
    """Sign in a sender of an organization with some points."""
    return visitor(app, books.make_organization(1_000, sandbox_balance=500), "sender")


@pytest.fixture
def many_connections(database: None, monkeypatch: pytest.MonkeyPatch) -> None:
    """Give every thread of a test a connection of its own."""
    engine().dispose()
    monkeypatch.setenv("POINTS_DATABASE_CONNECTIONS_MAX", "40")
    forget_everything()


@pytest.fixture
def own_send_path(many_connections: None, monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """Give the views of a test a send path of its own, whose threads end with the test."""
    monkeypatch.setattr("app.api.views.send.send_path", send_path.SendPath(Drains()))
    is_over = threading.Event()

    def until_over(work: Callable[[], None]) -> None:
        while not is_over.is_set():
            with suppress(Exception):
                work()

    monkeypatch.setattr(waiting, "_repeat", until_over)
    yield
    is_over.set()
    until(lambda: connections_in_use() == 0, "no thread of the send path has a connection any more")
    with suppress(RedisError):
        process_redis.redis().client_kill_filter(_type="pubsub")  # Its listener ends.


@pytest.fixture
def redis_proxy(servers: Servers, monkeypatch: pytest.MonkeyPatch) -> Iterator[Proxy]:
    """Put a proxy before the real Valkey, and have everything of ours reach it there."""
    with _behind_a_proxy("REDIS_URL", servers.redis_url, monkeypatch) as proxy:
        yield proxy


@pytest.fixture
def postgresql_proxy(database: None, servers: Servers, monkeypatch: pytest.MonkeyPatch) -> Iterator[Proxy]:
    """Put a proxy before the real PostgreSQL, and have everything of ours reach it there."""
    with _behind_a_proxy("DATABASE_URL", servers.database_url, monkeypatch) as proxy:
        yield proxy


@contextmanager
def _behind_a_proxy(setting: str, url: str, monkeypatch: pytest.MonkeyPatch) -> Iterator[Proxy]:
    before, _, rest = url.rpartition(":")
    port, _, path = rest.partition("/")
    proxy = Proxy(free_port(), int(port))
    monkeypatch.setenv(setting, f"{before}:{proxy.port}/{path}")
    forget_everything()
    yield proxy
    forget_everything()
    proxy.stop()


@pytest.fixture
def no_failure(events: list[MutableMapping[str, Any]]) -> Iterator[None]:
    """See that no drain failed, not even one that was then made good batch by batch."""
    yield
    assert [event for event in events if event["log_level"] == "error"] == []


@pytest.fixture
def balanced(database: None) -> Iterator[None]:
    """See that the books balance when a test ends, whatever it has done."""
    yield
    assert books.breaches() == []


@pytest.fixture(scope="package")
def unmigrated(tmp_path_factory: pytest.TempPathFactory) -> Iterator[PostgreSQL]:
    """Start a real PostgreSQL whose database holds nothing, for what a test may do to a whole database or server."""
    folder = tmp_path_factory.mktemp("unmigrated") / "data"
    copy_to(folder)
    server = PostgreSQL(DataDir(folder))
    server.prepare()
    server.start_detached()
    try:
        server.wait_until_ready()
        may_empty_tables(server)
        _hold_nothing(server.url())
        yield server
    finally:
        server.stop()


@pytest.fixture
def server_url(unmigrated: PostgreSQL) -> str:
    return unmigrated.url()


@pytest.fixture
def scratch(server_url: str) -> Iterator[Engine]:
    """Give a test that server's database, empty."""
    _hold_nothing(server_url)
    empty = new_engine(server_url, pool_size=5)
    yield empty
    empty.dispose()


def _hold_nothing(url: str) -> None:
    with psycopg.connect(url) as connection:
        connection.execute("SET client_min_messages = warning")
        connection.execute("DROP SCHEMA public CASCADE")
        connection.execute("CREATE SCHEMA public")


@pytest.fixture
def upkeep(database: None, broker: None) -> ModuleType:
    """Import it only now: importing the worker ends a process that has no settings yet."""
    return import_module("worker.upkeep")


@pytest.fixture
def sender(servers: Servers) -> Iterator[Celery]:
    """Give a sender of its own: the service's keeps the broker that it was first used with in this process."""
    with Celery(broker=servers.redis_url) as sender:
        yield sender


@pytest.fixture
def worker(broker: None, database: None, sender: Celery) -> Iterator[psutil.Process]:
    """Run a real worker with two processes and its upkeep suspended: nothing but the broker brings a message again."""
    command = [sys.executable, "-m", "celery", "--app", "worker", "--quiet", "worker", "--concurrency", "2"]
    process = subprocess.Popen([*command, "--without-mingle", "--without-gossip"], stderr=subprocess.DEVNULL)
    try:
        running = psutil.Process(process.pid)
        until(lambda: bool(workers.upkeep_of(running)), what="its upkeep runs")
        workers.upkeep_of(running)[0].suspend()
        until(lambda: bool(sender.control.ping(timeout=0.5, limit=1)), what="the worker answers")
        yield running
    finally:
        process.terminate()
        process.wait(TIMEOUT_S)


@pytest.fixture(scope="package")
def partitioned(unmigrated: PostgreSQL) -> Callable[[int], str]:
    """Give a function that makes a database whose partitions hold so many ids, anew each time, and return its address.

    It is a copy of one that is migrated once.
    """
    ours = make_url(unmigrated.url())
    names: dict[int, str] = {}

    def make(ids: int) -> str:
        with unmigrated._connect_as_superuser() as connection:
            if ids not in names:
                connection.execute(f"CREATE DATABASE partitioned_{ids} OWNER {ours.username}".encode())
                with pytest.MonkeyPatch.context() as patch:
                    patch.setenv("POINTS_PARTITION_BATCH_IDS", str(ids))
                    settings.cache_clear()
                    migrations.upgrade(_address(ours, f"partitioned_{ids}"))
                names[ids] = f"partitioned_{ids}"
            connection.execute(b"DROP DATABASE IF EXISTS partitioned WITH (FORCE)")
            copy = f"CREATE DATABASE partitioned OWNER {ours.username} TEMPLATE {names[ids]} STRATEGY file_copy"
            connection.execute(copy.encode())
        return _address(ours, "partitioned")

    return make


def _address(url: URL, database: str) -> str:
    return url.set(database=database).render_as_string(hide_password=False)


@pytest.fixture
def small_partitions(
    partitioned: Callable[[int], str],
    servers: Servers,
    monkeypatch: pytest.MonkeyPatch,
    request: pytest.FixtureRequest,
) -> Iterator[None]:
    """Give a test a database whose partitions are small, and have everything of ours use it."""
    ids, options = getattr(request, "param", (64, ""))
    monkeypatch.setenv("POINTS_PARTITION_BATCH_IDS", str(ids))
    monkeypatch.setenv("POINTS_DATABASE_CONNECTIONS_MAX", "20")
    monkeypatch.setenv("REDIS_URL", servers.redis_url)
    monkeypatch.setenv("DATABASE_URL", f"{partitioned(ids)}?options={quote(options)}")
    forget_everything()
    yield
    forget_everything()
