"""The service under test: `points up` on embedded servers of its own, without a rate limit."""

import contextlib
import os
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import psycopg
from sqlalchemy import Connection

from app import api_keys, organizations, users
from app.connections import new_engine
from app.ledger.claim import register
from app.ledger.refill import refill
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
# The servers are the bench's own. Settings are passed on, to be tried, but for where other servers are.
_NOT_PASSED_ON = ("DATABASE_URL", "REDIS_URL", "POINTS_")
_ELSEWHERE = ("_URL", "_DIR", "_POOLER")


@dataclass(frozen=True, kw_only=True)
class Sender:
    """An organization with points enough for every run, and its live key."""

    organization_id: int
    key: str


class Service:
    """A running service; `running` starts one."""

    def __init__(self, folder: Path, port: int) -> None:
        self._datadir = DataDir(folder)
        self.port = port
        self.database_url = PostgreSQL(self._datadir).url()
        self.redis_url = Valkey(self._datadir).url()

    def parts(self) -> dict[str, int]:
        """Return the process id of each part by its name.

        Raises:
            NotMeasured: one of them is not running.
        """
        running = {name: int(part["pid"]) for name, part in self._datadir.read(RUNNING_FILE)["parts"].items()}
        if missing := _PARTS - running.keys():
            raise NotMeasured(f"Not running: {', '.join(sorted(missing))}.")
        return running

    def connect(self) -> psycopg.Connection[tuple[object, ...]]:
        return psycopg.connect(self.database_url, autocommit=True)

    def checkpoint(self) -> None:
        """Put every changed page on disk, so that what was stored before does not disturb what is measured next."""
        with psycopg.connect(
            self.database_url, user="postgres", password=self._datadir.password("postgresql_superuser"), autocommit=True
        ) as connection:
            connection.execute("CHECKPOINT")

    def wait_until_folded(self) -> None:
        """Wait until every credit is folded: 10,000 of a send are work for the worker after it was answered."""
        deadline = time.monotonic() + _FOLDED_IN_S
        with self.connect() as connection:
            while connection.execute("SELECT FROM unfolded_batches LIMIT 1").fetchone() is not None:
                if time.monotonic() > deadline:
                    raise NotMeasured("The credits were not folded in time.")
                time.sleep(0.2)

    def sender(self) -> Sender:
        """Make an organization of its own for a measure."""
        with self._begin() as connection:
            organization_id = organizations.create(connection, "Bench", sandbox_start_balance=0)
            refill(connection, organization_id, _BALANCE)
            return Sender(
                organization_id=organization_id, key=api_keys.create(connection, organization_id, sandbox=False)[1]
            )

    def accounts(self, name: str, count: int) -> list[str]:
        """Register users and return their addresses."""
        emails = [f"{name}.{place}@example.com" for place in range(count)]
        with self._begin() as connection:
            register(connection, [users.new_user(email, "First", "Last") for email in emails])
        return emails

    @contextlib.contextmanager
    def _begin(self) -> Iterator[Connection]:
        own = new_engine(self.database_url, pool_size=1)
        try:
            with own.begin() as connection:
                yield connection
        finally:
            own.dispose()


def given_settings() -> dict[str, str]:
    """Return the settings that the bench was given, and that the service under test gets."""
    given = {name: value for name, value in sorted(os.environ.items()) if name.startswith("POINTS_")}
    return {name: value for name, value in given.items() if not name.endswith(_ELSEWHERE)}


def stop_with_us() -> None:
    """Let a SIGTERM end this program as Ctrl-C does, so that the service under test is stopped too."""

    def stop(*_: object) -> None:
        raise SystemExit("Stopped before the end.")

    signal.signal(signal.SIGTERM, stop)


@contextlib.contextmanager
def running(*, worker_events: bool = False, checkout: Path = ROOT) -> Iterator[Service]:
    """Start a service in a folder of its own; stop it, and leave nothing behind.

    It is the service of a checkout, in the environment that `make install` has made there, or else in this one.
    """
    python = checkout / ".venv/bin/python"
    with tempfile.TemporaryDirectory(prefix="points-bench-") as name:
        folder, port = Path(name), ports.any_free()
        options = ["--port", str(port), "--flower-port", str(ports.any_free()), "--data-dir", name]
        environment = {name: value for name, value in os.environ.items() if not name.startswith(_NOT_PASSED_ON)}
        environment |= given_settings() | {
            "POINTS_RATE_LIMIT": "off",
            "POINTS_WORKER_EVENTS": str(worker_events).lower(),
            # In whichever environment it runs, all of its parts shall be this checkout's.
            "PYTHONPATH": str(checkout),
        }
        with (folder / "output").open("wb") as output:
            process = subprocess.Popen(
                [
                    str(python) if python.exists() else sys.executable,
                    "-c",
                    "from app.cli import main; main()",
                    "up",
                    *options,
                ],
                env=environment,
                cwd=folder,  # Python looks there first, and shall find nothing.
                stdin=subprocess.DEVNULL,
                stdout=output,
                stderr=output,
                start_new_session=True,  # Ctrl-C reaches the bench, which then stops the service.
            )
        try:
            _wait_until_it_runs(process, folder / "output")
            service = Service(folder, port)
            _require_durability(service)
            yield service
        finally:
            process.send_signal(signal.SIGTERM)
            process.wait(90)


def _require_durability(service: Service) -> None:
    """See that a commit is on disk when it returns: without that, every figure would be a lie."""
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
