"""Each line of the Procfile, run on real servers until it is asked to stop: what the compose file runs is the same."""

import os
import signal
import subprocess
import sys
from collections.abc import Iterator, Mapping
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from pathlib import Path

import httpx
import pytest

import migrations
from app.local import ports
from app.messaging import process_redis, worker_counters
from app.postgres.connections import engine
from app.settings import settings
from tests.deadline import TIMEOUT_S, until
from tests.ports import free_port
from tests.unit.deployment.files import SECRETS, SHELL, health_check, procfile

PARTS = ("web", "worker", "deliveries", "beat", "flower")
STOPPED_IN_S = 40

# What somebody has chosen for a service of theirs must not move ours, least of all off the loopback address.
_CHOICES = ("DELIVERIES_", "FLOWER_", "GUNICORN_", "WEB_", "WORKER_")

pytestmark = pytest.mark.usefixtures("broker", "database")


@dataclass(frozen=True, kw_only=True)
class Place:
    """Where a test runs its commands: a folder and ports of its own, on the loopback address alone."""

    folder: Path
    web_port: int
    flower_port: int

    @property
    def environment(self) -> dict[str, str]:
        """The environment of a process, with the addresses of the servers that the fixtures have put there."""
        inherited = {name: value for name, value in os.environ.items() if not name.startswith(_CHOICES)}
        return {
            **inherited,
            "PATH": f"{Path(sys.executable).parent}:{os.environ['PATH']}",
            "TMPDIR": str(self.folder),
            "PORT": str(self.web_port),
            "WEB_ADDRESS": ports.HOST,
            "WORKER_CONCURRENCY": "1",
            "FLOWER_PORT": str(self.flower_port),
            "FLOWER_BASIC_AUTH": SECRETS["FLOWER_BASIC_AUTH"],
        }

    def alive_file(self, name: str) -> Path:
        return self.folder / f"{name}.alive"

    def is_healthy(self, name: str) -> bool:
        """Tell what the health check of the compose file says about a part."""
        here = {
            "127.0.0.1/8000": f"127.0.0.1/{self.web_port}",
            "127.0.0.1/5555": f"127.0.0.1/{self.flower_port}",
            "/tmp/alive": str(self.alive_file(name)),  # noqa: S108  # The container's own.
        }
        command = health_check(name)
        for there, place in here.items():
            command = [word.replace(there, place) for word in command]
        return subprocess.run(command, env=self.environment, capture_output=True, check=False).returncode == 0


@contextmanager
def started(name: str, place: Place) -> Iterator[subprocess.Popen[bytes]]:
    """Start a line in a group of its own; if it still runs at the end, it is killed with its group."""
    command = [SHELL, "-c", procfile()[name]]
    environment = place.environment | {"ALIVE_FILE": str(place.alive_file(name))}
    process = subprocess.Popen(command, env=environment, cwd=place.folder, start_new_session=True)
    try:
        yield process
    finally:
        if process.poll() is None:
            os.killpg(process.pid, signal.SIGKILL)
            process.wait()


def stop(processes: Mapping[str, subprocess.Popen[bytes]]) -> dict[str, int]:
    """Ask processes and all they have started to stop, as a platform does, and return their exit statuses."""
    for process in processes.values():
        os.killpg(process.pid, signal.SIGTERM)
    return {name: process.wait(STOPPED_IN_S) for name, process in processes.items()}


@pytest.fixture
def place(tmp_path: Path) -> Place:
    return Place(folder=tmp_path, web_port=free_port(), flower_port=free_port())


@pytest.mark.long
def test_every_part_comes_up_healthy_does_its_work_and_stops_when_asked(place: Place) -> None:
    with ExitStack() as stack:
        processes = {name: stack.enter_context(started(name, place)) for name in PARTS}
        for name, process in processes.items():
            until(lambda name=name, process=process: is_up(name, process, place), f"{name} is up")
        web = httpx.get(f"http://{ports.HOST}:{place.web_port}/readyz", timeout=30)
        assert (web.status_code, web.json()["data"]) == (200, {"status": "ready", "postgresql": "ok", "redis": "ok"})
        until(lambda: worker_counters.swept_s_ago(process_redis.redis()) is not None)
        assert not list(place.folder.rglob("*schedule*")), "beat keeps its schedule in memory"
        flower = f"http://{ports.HOST}:{place.flower_port}/"
        user, _, password = SECRETS["FLOWER_BASIC_AUTH"].partition(":")
        assert httpx.get(flower, timeout=30).status_code == 401
        assert httpx.get(flower, auth=(user, "wrong"), timeout=30).status_code == 401
        assert httpx.get(flower, auth=(user, password), timeout=30).status_code == 200
        assert stop(processes) == dict.fromkeys(PARTS, 0)


def is_up(name: str, process: subprocess.Popen[bytes], place: Place) -> bool:
    assert process.poll() is None, f"{name} ended with status {process.returncode}; its output says why"
    return place.is_healthy(name)


def test_migrating_brings_an_empty_database_up_to_date(place: Place) -> None:
    migrations.downgrade(settings().database_url, "base")
    try:
        assert not migrations.is_up_to_date()
        with started("release", place) as process:
            assert process.wait(TIMEOUT_S) == 0
        assert migrations.is_up_to_date()
    finally:
        migrations.upgrade(settings().database_url)


def test_no_part_starts_on_a_database_of_no_release(place: Place) -> None:
    with engine().begin() as connection:
        kept = connection.exec_driver_sql("SELECT obj_description('alembic_version'::regclass)").scalar_one()
        connection.exec_driver_sql("COMMENT ON TABLE alembic_version IS NULL")
    try:
        for name in ("release", "web", "worker", "deliveries", "beat"):
            command = [SHELL, "-c", procfile()[name]]
            done = subprocess.run(
                command, env=place.environment, cwd=place.folder, timeout=TIMEOUT_S, capture_output=True, check=False
            )
            assert done.returncode != 0, name
            assert b"The database was made by no release: its tables have no fingerprint" in done.stderr, name
    finally:
        with engine().begin() as connection:
            connection.exec_driver_sql(f"COMMENT ON TABLE alembic_version IS '{kept}'".replace("%", "%%"))
