"""The service under test as real processes: servers with a proxy each, web, two workers, deliveries and beat."""

import os
import shutil
import signal
import sys
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from urllib.parse import urlsplit, urlunsplit

import psycopg
from cryptography.fernet import Fernet
from sqlalchemy import Connection, Engine, event

import migrations
from app.local import ports
from app.local.datadir import DataDir
from app.local.postgresql import PostgreSQL
from app.local.valkey import Valkey
from app.postgres import connections
from app.postgres.timed_connection import TimedConnection
from tests.crash.cluster import Cluster
from tests.crash.planted import FOLDER, Pauses
from tests.crash.proxy import Proxy
from tests.crash.volume import Volume
from tests.deadline import TIMEOUT_S
from tests.ports import free_port
from tests.service.deployment import Parts
from tests.service.parts import Part

# Far above what a sweep takes, with which each send is issued that no message tells of.
_WAIT_S = 10
_WORKERS = ("worker1", "worker2")
_STANDBY = "standby"
_CHILDREN_PER_WORKER = 2
_CELERY = (sys.executable, "-m", "celery")
_ALONE = ("--without-mingle", "--without-gossip")
_NOT_OURS = ("POINTS_", "DATABASE_", "REDIS_", "CRASH_")

_SETTINGS = {
    "POINTS_RATE_LIMIT": "off",
    "POINTS_WAIT_S": str(_WAIT_S),
    "POINTS_WEBHOOK_ALLOW": "127.0.0.0/8",
    "POINTS_EVENTS_DAYS": "3650",  # No event is old where the clock is 400 days ahead for a moment.
}


def _behind(url: str, port: int) -> str:
    """Return the address with another port: the proxy's."""
    parts = urlsplit(url)
    host = parts.netloc.rpartition(":")[0]
    return urlunsplit(parts._replace(netloc=f"{host}:{port}"))


class Service(Parts):
    """Every process of it, the addresses to reach it by, and a way to the database past the proxy."""

    def __init__(self, folder: Path) -> None:
        inherited = {name: value for name, value in os.environ.items() if not name.startswith(_NOT_OURS)}
        super().__init__(folder / "logs", {**inherited, **_SETTINGS})
        self._folder = folder
        self.cluster = Cluster(folder / "postgresql")
        self._clusters = [self.cluster]
        self.broker_disk = Volume(folder / "valkey", size_mb=128)
        self.pauses = Pauses(folder / "pauses")
        self.valkey = Valkey(DataDir(self.broker_disk.path))
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
    def postgresql(self) -> PostgreSQL:
        return self.cluster.postgresql

    @property
    def disks(self) -> tuple[Volume, ...]:
        """The disks of both servers."""
        return *self.cluster.disks, self.broker_disk

    @property
    def engine(self) -> Engine:
        """The harness's own way to PostgreSQL, past the proxy; it leads to whichever server is the primary."""
        assert self._engine is not None, "the service has been started"
        return self._engine

    def start(self) -> None:
        """Start everything; callers may come before it answers, and are refused until then."""
        self.cluster.make()
        self.broker_disk.mount()
        self.valkey.prepare()
        self.supervisor.add(self._postgresql(self.cluster))
        self.add("valkey", self.valkey.command())
        self.postgresql.wait_until_ready()
        assert self.valkey.answers(within_s=TIMEOUT_S)
        migrations.upgrade(self.postgresql.url())
        self._engine = connections.new_engine(self.postgresql.url(), pool_size=8)
        event.remove(self._engine, "do_connect", connections._connect)
        event.listen(self._engine, "do_connect", self._connect)
        urls = {"DATABASE_URL": self.postgresql.url(), "REDIS_URL": self.valkey.url()}
        for name, url in urls.items():
            self.proxies[name] = proxy = Proxy(free_port(), _port(url))
            self.environment[name] = _behind(url, proxy.port)
        self.environment |= {FOLDER: str(self.pauses.folder), "PYTHONUNBUFFERED": "1"}
        self.environment["POINTS_SECRETS_KEY"] = Fernet.generate_key().decode()
        for name, command in self._commands().items():
            self.add(name, command)

    def _commands(self) -> dict[str, list[str]]:
        """Return what runs each of our own parts."""
        planted, celery = ([*_CELERY, "--app", app, "--quiet"] for app in ("tests.crash.planted_worker", "worker"))
        children = ["--concurrency", str(_CHILDREN_PER_WORKER), *_ALONE]
        threads = ["--queues", "deliveries", "--pool", "threads", "--concurrency", "8", *_ALONE]
        bind = ["--bind", f"{ports.HOST}:{self.web_port}"]
        return {
            **{name: [*planted, "worker", "--hostname", f"{name}@%h", *children] for name in _WORKERS},
            "deliveries": [*celery, "worker", "--hostname", "deliveries@%h", *threads],
            "beat": [*celery, "beat", "--pidfile="],
            "web": [sys.executable, "-m", "gunicorn", "--config", "python:tests.crash.planted_web", *bind],
        }

    def restart_with(self, environment: dict[str, str], *names: str) -> None:
        """End some of our own parts at once, and start them with this beside their environment."""
        threads = [
            threading.Thread(target=self.restart, args=(n, self.part(n).command), kwargs=environment) for n in names
        ]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()

    def _connect(self, dialect: object, record: object, arguments: object, named: dict[str, object]) -> TimedConnection:
        return connections._connect(dialect, record, arguments, named | {"port": _port(self.postgresql.url())})

    def restart_postgresql(self, command: list[str]) -> None:
        """End the server as its operator does, start it by another command, and wait until it answers."""
        part = self.part("postgresql")
        part.hold_down(signal.SIGINT)
        part.command = command
        part.start()
        self.postgresql.wait_until_ready()

    def add_standby(self) -> Cluster:
        """Start a standby of the server."""
        standby = Cluster(self._folder / f"postgresql{len(self._clusters)}")
        self._clusters.append(standby)
        standby.follow(self.cluster)
        self.supervisor.parts[_STANDBY] = part = self._postgresql(standby)
        part.start()
        return standby

    def _postgresql(self, cluster: Cluster) -> Part:
        """Return the part that a server is. Whichever is the primary, what it says is in one file."""
        return Part("postgresql", cluster.command(), self.environment, self.logs / "postgresql.log")

    def promote(self, standby: Cluster) -> None:
        """Let the standby of a server that is down take its place, and lead everybody there."""
        with standby.server.superuser() as connection:
            connection.execute("SELECT pg_promote()")
        old, self.cluster = self.cluster, standby
        self.supervisor.parts["postgresql"] = self.supervisor.parts.pop(_STANDBY)
        proxy = self.proxies["DATABASE_URL"]
        proxy.tell("targets", _port(self.postgresql.url()))
        proxy.tell("drop")  # Whoever is connected to the old one.
        for disk in old.disks:
            disk.remove()

    def empty_broker(self) -> None:
        """Take from the broker, which is down, everything it has written."""
        shutil.rmtree(self.broker_disk.path / "valkey" / "appendonlydir", ignore_errors=True)

    @contextmanager
    def connection(self) -> Iterator[Connection]:
        """Open a transaction past the proxy."""
        with self.engine.begin() as connection:
            yield connection

    def superuser(self) -> psycopg.Connection[tuple[object, ...]]:
        """Connect as who may see and end every backend."""
        return self.cluster.server.superuser()

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
        for disk in (self.broker_disk, *(disk for cluster in self._clusters for disk in cluster.disks)):
            disk.unmount()


def _port(url: str) -> int:
    port = urlsplit(url).port
    assert port is not None
    return port
