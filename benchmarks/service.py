"""The service under test: `points up` with new embedded servers and no rate limit."""

import contextlib
import csv
import json
import os
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from types import MappingProxyType
from typing import Any

import psycopg

from app.local import ports
from app.local.datadir import RUNNING_FILE, DataDir
from app.local.postgresql import PostgreSQL
from app.local.valkey import Valkey
from benchmarks.options import NotMeasured

ROOT = Path(__file__).parent.parent
_STARTED_IN_S = 180.0
_FOLDED_IN_S = 120.0
_BALANCE = 10**15
_PARTS = {"web", "worker1", "postgresql", "valkey", "beat", "flower"}
# Settings are passed on, so that they can be tried; the addresses of other servers are not.
_NOT_PASSED_ON = ("DATABASE_URL", "REDIS_URL", "POINTS_")
_ELSEWHERE = ("_URL", "_DIR", "_POOLER")


@dataclass(frozen=True, kw_only=True)
class Sender:
    """An organization with enough points for every run, and its live key."""

    organization_id: int
    key: str


class Service:
    """A running service; `running` starts one."""

    def __init__(self, folder: Path, port: int, checkout: Path = ROOT) -> None:
        self.folder = folder
        self._datadir = DataDir(folder)
        self._checkout = checkout
        self.port = port
        self.database_url = PostgreSQL(self._datadir).url()
        self.redis_url = Valkey(self._datadir).url()

    def parts(self) -> dict[str, int]:
        """Return the process id of each part by name.

        Raises:
            NotMeasured: a part is not running.
        """
        running = {name: int(part["pid"]) for name, part in self._datadir.read(RUNNING_FILE)["parts"].items()}
        if missing := _PARTS - running.keys():
            raise NotMeasured(f"Not running: {', '.join(sorted(missing))}.")
        return running

    def connect(self) -> psycopg.Connection[tuple[object, ...]]:
        return psycopg.connect(self.database_url, autocommit=True)

    def checkpoint(self) -> None:
        """Write all changed pages to disk, so that earlier writes do not disturb the next measurement."""
        with psycopg.connect(
            self.database_url, user="postgres", password=self._datadir.password("postgresql_superuser"), autocommit=True
        ) as connection:
            connection.execute("CHECKPOINT")

    def wait_until_folded(self) -> None:
        """Wait until all credits are folded: the worker does that after the answer."""
        deadline = time.monotonic() + _FOLDED_IN_S
        with self.connect() as connection:
            while connection.execute("SELECT FROM unfolded_batches LIMIT 1").fetchone() is not None:
                if time.monotonic() > deadline:
                    raise NotMeasured("The credits were not folded in time.")
                time.sleep(0.2)

    def sender(self) -> Sender:
        """Make a new organization."""
        made = self._command("organizations", "create", "Bench", "--balance", str(_BALANCE))
        key = self._command("keys", "create", str(made["id"]))
        return Sender(organization_id=made["id"], key=key["key"])

    def platform_key(self, *scopes: str) -> str:
        """Make a key of the platform and return it."""
        options = [part for scope in scopes for part in ("--scope", scope)]
        key: str = self._command("platform-keys", "create", "Bench", *options)["key"]
        return key

    def accounts(self, name: str, count: int) -> list[str]:
        """Register users and return their addresses."""
        emails = [f"{name}.{place}@example.com" for place in range(count)]
        with tempfile.NamedTemporaryFile("w", suffix=".csv", newline="") as file:
            csv.writer(file).writerows(
                [("email", "first_name", "last_name"), *((one, "First", "Last") for one in emails)]
            )
            file.flush()
            self._command("users", "import", file.name)
        return emails

    def start(self, *arguments: str) -> subprocess.Popen[str]:
        """Start a command of the service's own checkout, whose tables may be others."""
        return subprocess.Popen(
            [*_points(self._checkout), *arguments],
            env=_environment(self._checkout) | {"POINTS_DATA_DIR": str(self._datadir.path)},
            cwd=self._datadir.path,  # Python looks there first; it must find none of this checkout's code.
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
        )

    def _command(self, *arguments: str) -> dict[str, Any]:
        """Run a command and return what it prints."""
        with self.start(*arguments, "--json") as process:
            output, errors = process.communicate()
        if process.returncode != 0:
            raise NotMeasured(f"A command of the service failed:\n{errors}")
        document: dict[str, Any] = json.loads(output)
        return document


def given_settings() -> dict[str, str]:
    """Return the settings that were given to the benchmark and are passed to the service under test."""
    given = {name: value for name, value in sorted(os.environ.items()) if name.startswith("POINTS_")}
    return {name: value for name, value in given.items() if not name.endswith(_ELSEWHERE)}


def _points(checkout: Path) -> list[str]:
    """Return the command `points` of a checkout, in its own environment or else in this one."""
    python = checkout / ".venv/bin/python"
    return [str(python) if python.exists() else sys.executable, "-c", "from app.cli import main; main()"]


def _environment(checkout: Path) -> dict[str, str]:
    kept = {name: value for name, value in os.environ.items() if not name.startswith(_NOT_PASSED_ON)}
    # All parts must import the checkout's code, whatever the environment.
    return kept | {"PYTHONPATH": str(checkout)}


def stop_with_us() -> None:
    """Make SIGTERM end this program as Ctrl-C does, so that the service under test stops too."""

    def stop(*_: object) -> None:
        raise SystemExit("Stopped before the end.")

    signal.signal(signal.SIGTERM, stop)


@contextlib.contextmanager
def running(
    *, worker_events: bool = False, checkout: Path = ROOT, environment: Mapping[str, str] = MappingProxyType({})
) -> Iterator[Service]:
    """Start a service in a temporary folder; stop it and remove everything at the end.

    It runs a checkout's code, in the environment that `make install` made there, or else in this one.
    """
    with tempfile.TemporaryDirectory(prefix="points-bench-") as name:
        folder, port = Path(name), ports.any_free()
        options = ["--port", str(port), "--flower-port", str(ports.any_free()), "--data-dir", name]
        own = _environment(checkout) | given_settings() | {**environment}
        own |= {"POINTS_RATE_LIMIT": "off", "POINTS_WORKER_EVENTS": str(worker_events).lower()}
        with (folder / "output").open("wb") as output:
            process = subprocess.Popen(
                [*_points(checkout), "up", *options],
                env=own,
                cwd=folder,  # Python looks there first; it must find nothing.
                stdin=subprocess.DEVNULL,
                stdout=output,
                stderr=output,
                start_new_session=True,  # Ctrl-C reaches the benchmark alone, which stops the service.
            )
        try:
            _wait_until_it_runs(process, folder / "output")
            service = Service(folder, port, checkout)
            _require_durability(service)
            yield service
        finally:
            process.send_signal(signal.SIGTERM)
            process.wait(90)


def _require_durability(service: Service) -> None:
    """Require that a commit is on disk when it returns; otherwise every figure would be false."""
    with service.connect() as connection:
        for name in ("fsync", "synchronous_commit", "full_page_writes"):
            row = connection.execute("SELECT current_setting(%s)", (name,)).fetchone()
            if row != ("on",):
                raise NotMeasured(f"PostgreSQL's {name} is not on.")


def _wait_until_it_runs(process: subprocess.Popen[bytes], output: Path) -> None:
    deadline = time.monotonic() + _STARTED_IN_S
    while "Ctrl-C stops everything" not in (said := output.read_text(errors="replace")):
        if process.poll() is not None or time.monotonic() > deadline:
            raise NotMeasured(f"The service did not come up:\n{said}")
        time.sleep(0.1)
