"""`points up` as a process among processes: what dies comes back, and what is stopped leaves nothing."""

import json
import os
import signal
import socket
import subprocess
import time
from collections import Counter
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import httpx
import psutil
import psycopg
import pytest

from app.local.datadir import DataDir
from app.local.postgresql import PostgreSQL
from app.postgres.locks import Kind, number
from tests.conftest import Servers
from tests.deadline import TIMEOUT_S, until
from tests.service.inside import Service


@pytest.fixture(scope="module")
def ours(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Service]:
    """Start a service that makes its database itself, for the tests of this file, which break it and start it again."""
    service = Service(tmp_path_factory.mktemp("supervision") / "data")
    service.workers = 2
    try:
        service.start(is_first=True)
        yield service
        service.end()
    finally:
        service.close()


@pytest.fixture
def demo(ours: Service) -> dict[str, Any]:
    found: dict[str, Any] = json.loads((ours.data_dir / "demo.json").read_text())
    return found


@pytest.fixture
def own_service(tmp_path: Path) -> Iterator[Service]:
    """Prepare a service for one test alone; the test starts it."""
    service = Service(tmp_path / "data")
    try:
        yield service
    finally:
        service.close()


def _parts(service: Service) -> dict[str, Any]:
    parts: dict[str, Any] = json.loads((service.data_dir / "running.json").read_text())["parts"]
    return parts


def _ports(service: Service) -> list[str]:
    return ["--port", str(service.port), "--flower-port", str(service.flower_port)]


@pytest.mark.long
@pytest.mark.parametrize("interrupt", [signal.SIGINT, signal.SIGTERM])
def test_a_start_that_waits_for_another_migration_ends_when_asked(
    tmp_path: Path, servers: Servers, interrupt: signal.Signals
) -> None:
    empty = f"{servers.database_url}?options=-c%20search_path%3Dempty"
    own_service = Service(tmp_path / "data", DATABASE_URL=empty, REDIS_URL=servers.redis_url)
    with psycopg.connect(servers.database_url, autocommit=True) as other:
        other.execute("CREATE SCHEMA IF NOT EXISTS empty")
        other.execute("SELECT pg_advisory_lock(%s)", (number(Kind.MIGRATION),))
        asking = "SELECT FROM pg_stat_activity WHERE query LIKE '%pg_try_advisory_lock%' AND pid <> pg_backend_pid()"
        up = own_service.up
        with subprocess.Popen(up, env=own_service.environment, stdout=subprocess.PIPE, text=True) as starting:
            until(lambda: other.execute(asking).rowcount == 1, "it waits for its turn")
            starting.send_signal(interrupt)
            said, _ = starting.communicate(timeout=TIMEOUT_S)
    assert (starting.returncode, said.splitlines()[-1]) == (0, "Everything is stopped.")


@pytest.mark.long
def test_a_command_that_is_ended_leaves_no_server_behind(own_service: Service, tmp_path: Path) -> None:
    own_service.command("organizations", "create", "Acme")
    server = PostgreSQL(DataDir(own_service.data_dir))
    assert server.process() is None
    people = tmp_path / "people.csv"
    rows = "".join(f"{number}@example.com,First,Last\n" for number in range(300_000))  # It takes seconds.
    people.write_text(f"email,first_name,last_name\n{rows}")
    command = own_service.words("users", "import", str(people))
    with subprocess.Popen(command, env=own_service.environment, stderr=subprocess.PIPE) as importing:
        until(lambda: server.process() is not None, "it uses the database")
        importing.terminate()
        until(lambda: importing.poll() is not None, "it has ended")
        assert importing.returncode == 1
    assert server.process() is None


def _send_until_nobody_listens(service: Service, key: str) -> list[int]:
    """Send without pause; return the statuses, and 0 for each call that was cut off unanswered."""
    statuses = []
    while True:
        try:
            answer = service.send(key, {"recipient": "load@example.com", "amount": 1, "label": "load"})
            statuses.append(answer.status_code)
        except httpx.ConnectError:
            return statuses
        except httpx.TransportError:
            statuses.append(0)


@pytest.mark.long
def test_ctrl_c_under_load_answers_whoever_was_heard_and_leaves_the_data_and_no_process(
    ours: Service, demo: dict[str, Any]
) -> None:
    balance = ours.balance(demo["live"])
    family = ours.tree()[1:]
    assert len(family) > 8
    with ThreadPoolExecutor(6) as callers:
        calls = [callers.submit(_send_until_nobody_listens, ours, demo["development"]) for _ in range(6)]
        time.sleep(1)  # Load, and not a wait for anything.
        assert ours.stop() == 0
        statuses = Counter(status for call in calls for status in call.result())
    assert statuses[201] > 0
    assert set(statuses) <= {0, 201, 202, 429}
    _, alive = psutil.wait_procs(family, timeout=30)
    assert alive == []
    assert not (ours.data_dir / "running.json").exists()
    # A command finds the embedded database without the service, and puts it away again.
    shown = ours.command("organizations", "show", str(demo["organization_id"]), "--json").stdout
    assert json.loads(shown)["balance"] == balance
    assert json.loads(ours.command("status", "--json", status=1).stdout)["web_url"] is None
    told = f"points: No service runs here: this is about the database in {ours.data_dir}.\n"
    assert ours.command("audit").stderr == told, "that no Redis hears of it is no news to who stopped it"
    ours.output.clear()
    ours.start()
    assert ours.balance(demo["live"]) == balance
    with ours.connection() as connection:
        accepted = connection.exec_driver_sql("SELECT count(*) FROM batches WHERE label = 'load'").scalar_one()
    assert accepted == statuses[201] + statuses[202]  # Whoever was not answered was not heard.
    assert demo["live"] in "\n".join(ours.output)
    assert "A first batch" not in "\n".join(ours.output)


def test_a_part_that_is_killed_is_started_again_and_sends_are_issued(ours: Service, demo: dict[str, Any]) -> None:

    def is_ready() -> bool:
        try:
            return ours.call("GET", "/readyz").status_code == 200
        except httpx.TransportError:
            return False

    for name in ("worker1", "worker2", "deliveries", "web", "beat", "flower", "valkey", "postgresql"):
        pid = _parts(ours)[name]["pid"]
        os.kill(pid, signal.SIGKILL)
        until(lambda name=name, pid=pid: _parts(ours).get(name, {}).get("pid", pid) != pid, within_s=30)
        until(is_ready, within_s=30)
        assert any(line.startswith(f"{name:>10} │ died") for line in ours.output)
        answer = ours.send(demo["live"], {"recipient": "ada@example.com", "amount": 1})
        assert answer.status_code == 201, name


@pytest.mark.long
def test_a_supervisor_that_was_killed_is_cleaned_up_after_by_the_next_start(
    ours: Service, demo: dict[str, Any]
) -> None:
    assert ours.process is not None
    family = ours.tree()[1:]
    ours.process.kill()
    ours.process.wait()
    # Its parts still serve, and a command leaves them the PostgreSQL that it has not started.
    ours.command("organizations", "list")
    assert ours.send(demo["live"], {"recipient": "ada@example.com", "amount": 1}).status_code == 201
    ours.output.clear()
    ours.start()
    gone, _ = psutil.wait_procs(family, timeout=30)
    assert len(gone) == len(family)


@pytest.mark.long
@pytest.mark.parametrize("option", ["--port", "--flower-port"])
def test_a_port_that_is_taken_is_named_with_the_option_that_changes_it(own_service: Service, option: str) -> None:
    with socket.create_server(("127.0.0.1", 0)) as server:
        taken = str(server.getsockname()[1])
        refused = own_service.run("up", *_ports(own_service), option, taken, "--data-dir", str(own_service.data_dir))
    assert refused.returncode == 1
    assert f"Port {taken} is taken" in refused.stderr
    assert f"points up {option} N" in refused.stderr


@pytest.mark.long
def test_data_of_another_version_of_postgresql_is_named(own_service: Service) -> None:
    (own_service.data_dir / "postgresql").mkdir(parents=True)
    (own_service.data_dir / "postgresql" / "PG_VERSION").write_text("9\n")
    for command in (["up", *_ports(own_service)], ["audit"]):
        refused = own_service.run(*command, "--data-dir", str(own_service.data_dir))
        assert refused.returncode == 1
        assert "PostgreSQL 9" in refused.stderr
        assert "Traceback" not in refused.stderr
