"""`points up` as a process among processes: what dies comes back, and what is stopped leaves nothing."""

import json
import os
import re
import shutil
import signal
import socket
import subprocess
import time
from collections import Counter
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
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
from tests.deadline import until
from tests.service.inside import Service
from tests.service.up import STARTED_IN_S
from tests.unit.deployment.files import SHELL


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


def test_a_first_start_shows_keys_that_work_and_a_batch_that_was_issued(ours: Service, demo: dict[str, Any]) -> None:
    shown = "\n".join(ours.output)
    assert "POST /v1/points/verify  200" in shown
    assert "POST /v1/points/send    201" in shown
    for name, address in {
        "HTTP": ours.url,
        "Docs": f"{ours.url}/docs",
        "Flower": f"http://127.0.0.1:{ours.flower_port}   user points, password ",
        "Database": "postgresql://points:***@127.0.0.1:",
        "Redis": "redis://:***@127.0.0.1:",
    }.items():
        assert f"  {name:<8}  {address}" in shown
    assert shown.index(demo["development"]) < shown.index(demo["live"])
    answer = ours.send(demo["live"], {"recipients": ["ada@example.com", "grace@example.com"], "amount": 50})
    assert answer.status_code == 201
    if shutil.which("curl") is not None:
        lines = shown.split("to verify and to send:\n")[1].split("\n\n")[0]
        pasted = subprocess.run([SHELL, "-e"], input=lines, capture_output=True, text=True, timeout=60, check=True)
        assert re.findall(r"HTTP/1.1 (\d+)", pasted.stdout) == ["200", "201"]
        assert ours.balance(demo["development"]) == 1_000_000 - 100


@pytest.mark.long
@pytest.mark.parametrize(
    ("settings", "shown"),
    [
        (
            {"POINTS_AMOUNT_MAX": "10", "POINTS_RECIPIENTS_MAX": "1", "POINTS_SANDBOX_BALANCE": "0"},
            "ada@example.com    10 points, credited",
        ),
        ({"POINTS_RATE_LIMIT": "1/day"}, "A first batch was not issued: The service answers 429"),
    ],
)
def test_a_first_start_fits_its_settings(tmp_path: Path, settings: dict[str, str], shown: str) -> None:
    service = Service(tmp_path / "data", **settings)
    try:
        service.start()
        output = "\n".join(service.output)
    finally:
        service.close()
    assert shown in output
    assert "pts_live_" in output
    assert '"amount": 10}' in output or "POINTS_AMOUNT_MAX" not in settings


@pytest.mark.long
def test_it_runs_among_modules_of_the_same_names_and_tells_of_a_misspelt_setting(tmp_path: Path) -> None:
    for name in ("app.py", "worker.py", "celery.py"):
        (tmp_path / name).write_text("raise SystemExit('this is a module of somebody else')\n")
    proxy = "http://127.0.0.1:1"
    service = Service(tmp_path / "data", http_proxy=proxy, HTTP_PROXY=proxy, POINTS_RATE_LIMT="off")
    service.folder = tmp_path
    try:
        service.start()
        status = service.json("status")
        words = "warning setting_not_known  name=POINTS_RATE_LIMT meant=POINTS_RATE_LIMIT"
        until(lambda: sum(words in line for line in service.output) == 3, within_s=30)
        shown = "\n".join(service.output)
    finally:
        service.close()
    told = sorted(line.split("│")[0].strip() for line in service.output if words in line)
    assert told == ["deliveries", "web", "worker1"]
    assert (status["web"], status["flower"], len(status["workers"])) == (True, True, 1)
    assert "POST /v1/points/send    201" in shown
    assert " died (" not in shown
    assert "FATAL" not in shown


@pytest.mark.long
def test_a_start_waits_for_a_command_that_uses_the_database(own_service: Service) -> None:
    own_service.command("organizations", "create", "Acme")
    at_work = DataDir(own_service.data_dir).try_lock("use.lock", shared=True)
    assert at_work is not None
    with ThreadPoolExecutor(1) as pool, at_work:
        starting = pool.submit(own_service.start)
        until(lambda: "Waiting for a command that uses the database …" in own_service.output, within_s=30)
        assert not starting.done()
        at_work.close()
        starting.result(STARTED_IN_S)
    own_service.command("audit")


def test_a_start_that_waits_for_another_migration_ends_when_asked(tmp_path: Path, servers: Servers) -> None:
    empty = f"{servers.database_url}?options=-c%20search_path%3Dempty"
    own_service = Service(tmp_path / "data", DATABASE_URL=empty, REDIS_URL=servers.redis_url)
    with psycopg.connect(servers.database_url, autocommit=True) as other:
        other.execute("CREATE SCHEMA IF NOT EXISTS empty")
        other.execute("SELECT pg_advisory_lock(%s)", (number(Kind.MIGRATION),))
        asking = "SELECT FROM pg_stat_activity WHERE query LIKE '%pg_try_advisory_lock%' AND pid <> pg_backend_pid()"
        up = own_service.up
        with subprocess.Popen(up, env=own_service.environment, stdout=subprocess.PIPE, text=True) as starting:
            until(lambda: other.execute(asking).rowcount == 1, "it waits for its turn")
            starting.send_signal(signal.SIGINT)
            said, _ = starting.communicate(timeout=STARTED_IN_S)
    assert (starting.returncode, said.splitlines()[-1]) == (0, "Everything is stopped.")


@pytest.mark.parametrize(
    "number", [signal.SIGINT, *(pytest.param(one, marks=pytest.mark.long) for one in (signal.SIGTERM, signal.SIGHUP))]
)
def test_a_start_that_waits_is_ended_by_any_of_the_signals(own_service: Service, number: signal.Signals) -> None:
    datadir = DataDir(own_service.data_dir)
    datadir.create()
    at_work = datadir.try_lock("use.lock", shared=True)
    assert at_work is not None
    command = own_service.up
    pipe = subprocess.PIPE
    with at_work, subprocess.Popen(command, env=own_service.environment, stdout=pipe, stderr=pipe, text=True) as up:
        assert up.stdout is not None
        assert "Waiting for a command" in up.stdout.readline()
        up.send_signal(number)
        try:
            _, told = up.communicate(timeout=30)
        finally:
            up.kill()  # While the database is in use, it has started nothing yet.
    assert (up.returncode, told) == (1, "points: Interrupted. Nothing was started.\n")


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


@pytest.mark.long
@pytest.mark.parametrize("is_gone", [False, True])
def test_a_service_whose_output_nobody_reads_goes_on_and_stops(own_service: Service, is_gone: bool) -> None:
    up = own_service.up
    process = own_service.process = subprocess.Popen(
        up, env=own_service.environment, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True
    )
    assert process.stdout is not None
    with process.stdout:
        while "Ctrl-C stops everything." not in process.stdout.readline():
            assert process.poll() is None
        if is_gone:
            process.stdout.close()
        key = json.loads((own_service.data_dir / "demo.json").read_text())["live"]
        # Each is a line of a hundred bytes at least; a pipe takes 64 KB, and those between the parts as much.
        with httpx.Client(base_url=own_service.url, headers={"Authorization": f"Bearer {key}"}, timeout=30) as caller:
            statuses = Counter(caller.get("/v1/organization").status_code for _ in range(2_000))
        assert statuses == {200: 2_000}
        assert own_service.stop() == 0


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


@pytest.mark.parametrize("option", ["--port", "--flower-port"])
def test_a_port_that_is_taken_is_named_with_the_option_that_changes_it(own_service: Service, option: str) -> None:
    with socket.create_server(("127.0.0.1", 0)) as server:
        taken = str(server.getsockname()[1])
        refused = own_service.run("up", *_ports(own_service), option, taken, "--data-dir", str(own_service.data_dir))
    assert refused.returncode == 1
    assert f"Port {taken} is taken" in refused.stderr
    assert f"points up {option} N" in refused.stderr


def test_data_of_another_version_of_postgresql_is_named(own_service: Service) -> None:
    (own_service.data_dir / "postgresql").mkdir(parents=True)
    (own_service.data_dir / "postgresql" / "PG_VERSION").write_text("9\n")
    for command in (["up", *_ports(own_service)], ["audit"]):
        refused = own_service.run(*command, "--data-dir", str(own_service.data_dir))
        assert refused.returncode == 1
        assert "PostgreSQL 9" in refused.stderr
        assert "Traceback" not in refused.stderr


@pytest.mark.skipif(not hasattr(os, "sched_getaffinity"), reason="this system keeps no process to a core")
def test_web_processes_share_the_cores_also_after_one_was_replaced(ours: Service) -> None:
    cores = os.sched_getaffinity(0)

    def kept_to(*, but: int | None = None) -> Counter[frozenset[int]]:
        web = psutil.Process(_parts(ours)["web"]["pid"]).children()
        with suppress(ProcessLookupError):  # One of them has just died.
            return Counter(frozenset(os.sched_getaffinity(process.pid)) for process in web if process.pid != but)
        return Counter()

    processes = 2
    alone = [frozenset({core}) for core in sorted(cores)]
    shared = Counter([frozenset(cores)] * processes if len(cores) > processes else (alone * processes)[:processes])
    until(lambda: kept_to() == shared)
    killed = psutil.Process(_parts(ours)["web"]["pid"]).children()[0]
    killed.kill()
    until(lambda: kept_to(but=killed.pid) == shared)
