"""The whole service for the tests over HTTP: `points up` in a process of its own, and callers of it."""

import contextlib
import json
import os
import signal
import subprocess
import sys
import threading
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import httpx
import pytest
from sqlalchemy import Connection, Engine

from app import api_keys, organizations, users
from app.ledger.claim import register
from app.ledger.refill import refill
from app.local.datadir import DataDir
from app.local.postgresql import PostgreSQL
from app.postgres.connections import new_engine
from tests.ports import free_port

STARTED_IN_S = 90
STOPPED_IN_S = 60

# As it is installed: from any folder, whatever modules lie there.
_POINTS = [str(Path(sys.executable).with_name("points"))]

# No test of ours is a flood, but some make many calls with one key on purpose.
# The port is what Kubernetes sets where a service is named flower.
# Webhooks may lead to receivers of the tests.
_ENVIRONMENT = {
    "POINTS_RATE_LIMIT": "off",
    "FLOWER_PORT": "tcp://10.0.0.7:5555",
    "POINTS_WEBHOOK_ALLOW": "127.0.0.0/8",
}


@dataclass(frozen=True, kw_only=True)
class Organization:
    """An organization with a key for each mode."""

    id: int
    live: str
    development: str


class Service:
    """A running service: its commands as an operator gives them, its calls as a caller makes them."""

    def __init__(self, data_dir: Path, environment: Mapping[str, str], *, folder: Path | None = None) -> None:
        self.data_dir = data_dir
        self.folder = folder
        self.environment = {
            **{
                name: value
                for name, value in os.environ.items()
                if not name.startswith(("POINTS_", "DATABASE_", "REDIS_"))
            },
            **_ENVIRONMENT,
            **environment,
        }
        self.port, self.flower_port = free_port(), free_port()
        self.output: list[str] = []
        self.process: subprocess.Popen[str] | None = None

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.port}"

    def start(self) -> None:
        """Run `points up` and wait until it says that it runs."""
        self.process = subprocess.Popen(
            self.command("up", "--port", str(self.port), "--flower-port", str(self.flower_port), "--workers", "2"),
            env=self.environment,
            cwd=self.folder,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            start_new_session=True,
        )
        running = threading.Event()
        threading.Thread(target=self._read, args=(self.process, running), daemon=True).start()
        if not running.wait(STARTED_IN_S) or self.process.poll() is not None:
            self.kill()
            pytest.fail("`points up` did not come up:\n" + "\n".join(self.output))

    def _read(self, process: subprocess.Popen[str], running: threading.Event) -> None:
        assert process.stdout is not None
        with process.stdout:
            for line in process.stdout:
                self.output.append(line.rstrip())
                if "Ctrl-C stops everything" in line:
                    running.set()
        running.set()  # It ended: nobody shall wait for it any longer.

    def stop(self) -> int:
        """Ask it to stop as Ctrl-C does, and return its exit status."""
        assert self.process is not None
        self.process.send_signal(signal.SIGINT)
        return self.process.wait(STOPPED_IN_S)

    def kill(self) -> None:
        if self.process is not None and self.process.poll() is None:
            with contextlib.suppress(ProcessLookupError):
                self.process.send_signal(signal.SIGTERM)
            self.process.wait(STOPPED_IN_S)

    def command(self, *arguments: str) -> list[str]:
        """Return a `points` command with this service's data directory."""
        return self.points_command(*arguments, "--data-dir", str(self.data_dir))

    def points_command(self, *arguments: str) -> list[str]:
        """Return a `points` command with just these arguments."""
        return [*_POINTS, *arguments]

    def run(self, arguments: list[str], *, stdin: str = "", **environment: str) -> subprocess.CompletedProcess[str]:
        """Run `points` with just these arguments, and `stdin` to be read."""
        return subprocess.run(
            self.points_command(*arguments),
            env=self.environment | environment,
            input=stdin,
            capture_output=True,
            text=True,
            timeout=120,
            check=False,
        )

    def points(self, *arguments: str, status: int = 0) -> subprocess.CompletedProcess[str]:
        """Give a command and require its exit status."""
        done = self.run([*arguments, "--data-dir", str(self.data_dir)])
        assert done.returncode == status, done.stdout + done.stderr
        return done

    def points_json(self, *arguments: str) -> Any:
        """Give a command with `--json` and return the one document it prints."""
        return json.loads(self.points(*arguments, "--json").stdout)

    def organization(self, balance: int = 0, *, sandbox_balance: int = 1_000_000, name: str = "Acme") -> Organization:
        """Make an organization with a live and a development key, without the second a command takes to start."""
        with self.connection() as connection:
            organization_id = organizations.create(connection, name, sandbox_start_balance=sandbox_balance)
            for amount, sandbox in ((balance, False), (sandbox_balance, True)):
                if amount:
                    refill(connection, organization_id, amount, sandbox=sandbox)
            return Organization(
                id=organization_id,
                live=api_keys.create(connection, organization_id, sandbox=False)[1],
                development=api_keys.create(connection, organization_id, sandbox=True)[1],
            )

    def new_engine(self) -> Engine:
        """Make an engine on the service's own database, for whoever opens many transactions."""
        return new_engine(PostgreSQL(DataDir(self.data_dir)).url(), pool_size=1)

    @contextlib.contextmanager
    def connection(self) -> Iterator[Connection]:
        """Open a transaction on the service's own database."""
        engine = self.new_engine()
        try:
            with engine.begin() as connection:
                yield connection
        finally:
            engine.dispose()

    def register(self, email: str) -> None:
        """Register a user, as `points users create` does."""
        with self.connection() as connection:
            register(connection, [users.new_user(email, "First", "Last")])

    def call(self, method: str, path: str, *, key: str | None = None, **request: Any) -> httpx.Response:
        """Make one call, with `key` as the caller's."""
        headers = {"Accept": "application/json", **request.pop("headers", {})}
        if key is not None:
            headers["Authorization"] = f"Bearer {key}"
        return httpx.request(method, self.url + path, headers=headers, timeout=60, **request)

    def send(self, key: str, body: Mapping[str, Any], **headers: str) -> httpx.Response:
        return self.call("POST", "/v1/points/send", key=key, json=body, headers=_dashed(headers))

    def verify(self, key: str, body: Mapping[str, Any]) -> httpx.Response:
        return self.call("POST", "/v1/points/verify", key=key, json=body)

    def balance(self, key: str) -> int:
        return int(self.call("GET", "/v1/organization", key=key).json()["data"]["balance"])


@contextlib.contextmanager
def running_service(folder: Path) -> Iterator[Service]:
    """Run the whole service on embedded servers; the books balance at its end."""
    running = Service(folder, {})
    try:
        running.start()
        yield running
        running.points("audit")
        assert running.stop() == 0
    finally:
        running.kill()


@pytest.fixture(scope="package")
def service(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Service]:
    """Run a service for all tests over HTTP, and no longer: one that nobody asks takes a gigabyte all the same."""
    with running_service(tmp_path_factory.mktemp("service")) as running:
        yield running


def _dashed(headers: Mapping[str, str]) -> dict[str, str]:
    return {name.replace("_", "-"): value for name, value in headers.items()}
