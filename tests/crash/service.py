"""The service under test as real processes: servers with a proxy each, web, two workers, deliveries and beat."""

import os
import shutil
import signal
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from urllib.parse import urlsplit, urlunsplit

import psycopg
from cryptography.fernet import Fernet
from sqlalchemy import Connection, Engine

import migrations
from app.local import ports
from app.local.datadir import DataDir
from app.local.postgresql import PostgreSQL
from app.local.valkey import Valkey
from app.postgres.connections import new_engine
from tests.crash.planted import FOLDER, Pauses
from tests.crash.proxy import Proxy
from tests.crash.volume import Volume
from tests.deadline import TIMEOUT_S
from tests.ports import free_port
from tests.service.deployment import Parts
from tests.service.parts import Part

WAIT_S = 5
_WORKERS = ("worker1", "worker2")
_CHILDREN_PER_WORKER = 2
_ALONE = ("--without-mingle", "--without-gossip")
_NOT_OURS = ("POINTS_", "DATABASE_", "REDIS_", "CRASH_")

_SETTINGS = {"POINTS_RATE_LIMIT": "off", "POINTS_WAIT_S": str(WAIT_S), "POINTS_WEBHOOK_ALLOW": "127.0.0.0/8"}


def _behind(url: str, port: int) -> str:
    """Return the address with another port: the proxy's."""
    parts = urlsplit(url)
    host = parts.netloc.rpartition(":")[0]
    return urlunsplit(parts._replace(netloc=f"{host}:{port}"))


class Service(Parts):
    """Every process of it, the addresses to reach it by, and a way to the database past the proxy."""

    def __init__(self, folder: Path, **environment: str) -> None:
        inherited = {name: value for name, value in os.environ.items() if not name.startswith(_NOT_OURS)}
        super().__init__(folder / "logs", {**inherited, **_SETTINGS, **environment})
        self.volume = Volume(folder / "data")
        self.data = DataDir(folder / "data")
        self.pauses = Pauses(folder / "pauses")
        self.postgresql, self.valkey = PostgreSQL(self.data), Valkey(self.data)
        self.web_port = free_port()
        self.proxies: dict[str, Proxy] = {}
        self._engine: Engine | None = None

    @property
    def workers(self) -> list[Part]:
        return [self.part(name) for name in _WORKERS]

    @property
    def web(self) -> Part:
        return self.part("web")

    @property
    def engine(self) -> Engine:
        """The harness's own way to PostgreSQL, past the proxy."""
        assert self._engine is not None, "the service has been started"
        return self._engine

    def start(self) -> None:
        """Start everything; callers may come before it answers, and are refused until then."""
        self.volume.mount()
        self.data.create()
        self.postgresql.prepare()
        self.valkey.prepare()
        # A small log of changes fits a small disk; every error is kept, so that a deadlock is seen there too.
        options = ["max_wal_size=64MB", "min_wal_size=32MB", "log_min_messages=error"]
        self.add("postgresql", [*self.postgresql.command(), *(f"--{option}" for option in options)])
        self.add("valkey", self.valkey.command())
        self.postgresql.wait_until_ready()
        assert self.valkey.answers(within_s=TIMEOUT_S)
        migrations.upgrade(self.postgresql.url())
        self._engine = new_engine(self.postgresql.url(), pool_size=8)
        urls = {"DATABASE_URL": self.postgresql.url(), "REDIS_URL": self.valkey.url()}
        for name, url in urls.items():
            target = urlsplit(url).port
            assert target is not None
            self.proxies[name] = proxy = Proxy(free_port(), target)
            self.environment[name] = _behind(url, proxy.port)
        self.environment |= {FOLDER: str(self.pauses.folder), "PYTHONUNBUFFERED": "1"}
        self.environment["POINTS_SECRETS_KEY"] = Fernet.generate_key().decode()
        for name in _WORKERS:
            self.add(name, self.worker_command(name))
        self.add("deliveries", self.deliveries_command())
        self.add("beat", self.beat_command())
        self.add("web", self.web_command())

    def web_command(self, shift_s: int = 0) -> list[str]:
        bind = f"{ports.HOST}:{self.web_port}"
        return [*_python(shift_s), "gunicorn", "--config", "python:tests.crash.planted_web", "--bind", bind]

    def worker_command(self, name: str, shift_s: int = 0) -> list[str]:
        options = ["--concurrency", str(_CHILDREN_PER_WORKER), *_ALONE]
        celery = ["celery", "--app", "tests.crash.planted_worker", "--quiet"]
        return [*_python(shift_s), *celery, "worker", "--hostname", f"{name}@%h", *options]

    def deliveries_command(self) -> list[str]:
        options = ["--queues", "deliveries", "--pool", "threads", "--concurrency", "8", *_ALONE]
        return [*_python(0), "celery", "--app", "worker", "--quiet", "worker", "--hostname", "deliveries@%h", *options]

    def beat_command(self) -> list[str]:
        return [*_python(0), "celery", "--app", "worker", "--quiet", "beat", "--pidfile="]

    def empty_broker(self) -> None:
        """Take from the broker, which is down, everything it has written."""
        shutil.rmtree(self.data.path / "valkey" / "appendonlydir", ignore_errors=True)

    @contextmanager
    def connection(self) -> Iterator[Connection]:
        """Open a transaction past the proxy."""
        with self.engine.begin() as connection:
            yield connection

    def superuser(self) -> psycopg.Connection[tuple[object, ...]]:
        """Connect as who may see and end every backend."""
        return psycopg.connect(
            host=ports.HOST,
            port=urlsplit(self.postgresql.url()).port,
            user="postgres",
            password=self.data.password("postgresql_superuser"),
            dbname="points",
            autocommit=True,
            connect_timeout=3,
        )

    def stop(self) -> None:
        """Leave no process and no mount behind."""
        if self._engine is not None:
            self._engine.dispose()
        for part in self.supervisor.parts.values():
            part.retire()
        for name in [name for name in reversed(self.supervisor.parts) if name != "postgresql"]:
            self.part(name).hold_down(signal.SIGKILL)
        if "postgresql" in self.supervisor.parts:
            self.part("postgresql").hold_down(signal.SIGINT)
        self.supervisor.stop()
        for proxy in self.proxies.values():
            proxy.stop()
        self.volume.unmount()


def _python(shift_s: int) -> list[str]:
    """Return what to put before a module's name to run it, with a clock that is wrong if so wished."""
    return [sys.executable, "-m", *(["tests.crash.shifted", str(shift_s)] if shift_s else [])]
