"""What some tests share: many connections, a proxy before Redis, the proof that no drain failed, a bare server."""

from collections.abc import Iterator, MutableMapping
from typing import Any

import pytest
from sqlalchemy import Engine

from app.database import engine, new_engine
from app.local import ports
from app.local.datadir import DataDir
from app.local.postgresql import PostgreSQL
from tests.conftest import Servers, forget_everything
from tests.crash.proxy import Proxy


@pytest.fixture
def many_connections(database: None, monkeypatch: pytest.MonkeyPatch) -> None:
    """Give every thread of a test a connection of its own."""
    engine().dispose()
    monkeypatch.setenv("POINTS_DATABASE_CONNECTIONS_MAX", "40")
    forget_everything()


@pytest.fixture
def redis_proxy(servers: Servers, monkeypatch: pytest.MonkeyPatch) -> Iterator[Proxy]:
    """Put a proxy before the real Valkey, and have everything of ours reach it there."""
    before, _, rest = servers.redis_url.rpartition(":")
    port, _, path = rest.partition("/")
    proxy = Proxy(ports.any_free(), int(port))
    monkeypatch.setenv("REDIS_URL", f"{before}:{proxy.port}/{path}")
    forget_everything()
    yield proxy
    proxy.stop()


@pytest.fixture
def no_failure(events: list[MutableMapping[str, Any]]) -> Iterator[None]:
    """See that no drain failed, not even one that was then made good batch by batch."""
    yield
    assert [event for event in events if event["log_level"] == "error"] == []


@pytest.fixture(scope="package")
def unmigrated(tmp_path_factory: pytest.TempPathFactory) -> Iterator[PostgreSQL]:
    """Start a real PostgreSQL whose database nobody has migrated."""
    server = PostgreSQL(DataDir(tmp_path_factory.mktemp("unmigrated")))
    server.prepare()
    server.start_detached()
    try:
        server.wait_until_ready()
        yield server
    finally:
        server.stop()


@pytest.fixture
def server_url(unmigrated: PostgreSQL) -> str:
    return unmigrated.url()


@pytest.fixture
def scratch(server_url: str) -> Iterator[Engine]:
    """Give a test that server's database, empty."""
    empty = new_engine(server_url, pool_size=5)
    with empty.begin() as connection:
        connection.exec_driver_sql("DROP SCHEMA public CASCADE")
        connection.exec_driver_sql("CREATE SCHEMA public")
    yield empty
    empty.dispose()
