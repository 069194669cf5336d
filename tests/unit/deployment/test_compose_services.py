"""The containers of the compose file: what they run, when they start, what they may, how long they may take to stop."""

import re
from importlib import import_module
from pathlib import Path

import pytest

from app.api.sending.wait_slots import THREADS
from app.messaging.jobs import TASK_TIME_LIMIT_S
from app.webhooks.posting import ATTEMPT_TIMEOUT_S
from tests.unit.deployment.files import OF_OURS, ROOT, RUNNING, SECRETS, compose, seconds, service
from tests.unit.deployment.lines import words_of_line

# Of a web process: to listen, to look, to write the log, to count, and its own.
_OTHER_THREADS = 10
_EVERYWHERE = "0.0.0.0"  # noqa: S104  # Compared with, and never bound to.


def test_the_service_is_made_of_these_containers() -> None:
    assert set(compose()["services"]) == {*OF_OURS, *RUNNING, "prometheus", "grafana"}


@pytest.mark.parametrize("name", ["worker", "deliveries", "beat", "flower"])
def test_a_container_runs_what_the_procfile_runs(name: str, tmp_path: Path) -> None:
    there = service(name)["command"]
    ours = words_of_line(name, tmp_path, FLOWER_BASIC_AUTH="user:password", FLOWER_ADDRESS=_EVERYWHERE)
    assert there == ours


def test_migrate_runs_what_a_release_runs(tmp_path: Path) -> None:
    assert service("migrate")["command"] == words_of_line("release", tmp_path)


def test_web_runs_the_command_of_the_image() -> None:
    assert "command" not in service("web")


def test_a_worker_has_as_many_processes_as_the_environment_says() -> None:
    command = service("worker", {**SECRETS, "WORKER_CONCURRENCY": "11"})["command"]
    assert command[command.index("--concurrency") + 1] == "11"


def test_workers_can_be_scaled() -> None:
    assert {"container_name", "ports", "hostname", "scale", "deploy"}.isdisjoint(service("worker"))


def test_there_is_one_beat() -> None:
    assert service("beat")["scale"] == 1


def test_one_build_makes_the_image_of_every_part_of_ours() -> None:
    assert {service(name)["image"] for name in OF_OURS} == {"points-issuing-service"}
    assert [name for name in compose()["services"] if "build" in service(name)] == ["migrate"]
    assert {service(name)["pull_policy"] for name in OF_OURS} == {"never"}


@pytest.mark.parametrize("name", ["postgres", "redis"])
def test_a_server_is_pinned_to_one_release(name: str) -> None:
    assert re.fullmatch(r"[a-z/]+:\d+\.\d+(\.\d+)?(-[a-z]+)?", service(name)["image"])


def test_postgresql_is_new_enough() -> None:
    assert int(service("postgres")["image"].rpartition(":")[2].partition(".")[0]) >= 15


@pytest.mark.parametrize("name", sorted(set(compose()["services"]) - {"migrate"}))
def test_every_container_that_keeps_running_has_a_health_check_and_is_started_again(name: str) -> None:
    check = service(name)["healthcheck"]
    assert check["test"][0] in ("CMD", "CMD-SHELL")
    assert seconds(check["timeout"]) <= seconds(check["interval"])
    assert check["retries"] >= 3
    assert seconds(check["start_period"]) >= 30
    assert service(name)["restart"] == "unless-stopped"


def test_migrate_runs_once() -> None:
    assert service("migrate")["restart"] == "no"
    assert "healthcheck" not in service("migrate")


@pytest.mark.parametrize("name", ["web", "worker", "deliveries", "beat", "flower"])
def test_nothing_of_ours_starts_before_the_tables_and_the_servers_are_there(name: str) -> None:
    assert {other: wanted["condition"] for other, wanted in service(name)["depends_on"].items()} == {
        "migrate": "service_completed_successfully",
        "postgres": "service_healthy",
        "redis": "service_healthy",
    }


def test_migrate_waits_for_postgresql() -> None:
    assert service("migrate")["depends_on"] == {"postgres": {"condition": "service_healthy"}}


def test_only_what_people_look_at_is_published_and_only_on_the_loopback_address() -> None:
    published = {name: service(name)["ports"] for name in compose()["services"] if "ports" in service(name)}
    assert published == {
        "web": ["127.0.0.1:8000:8000"],
        "flower": ["127.0.0.1:5555:5555"],
        "prometheus": ["127.0.0.1:9090:9090"],
        "grafana": ["127.0.0.1:3000:3000"],
    }


@pytest.mark.parametrize("name", ["prometheus", "grafana"])
def test_monitoring_starts_only_when_asked_for_and_finds_its_files(name: str) -> None:
    found = service(name)
    assert found["profiles"] == ["monitoring"]
    assert found["read_only"] is True
    mounted = [volume.split(":")[0] for volume in found["volumes"] if volume.startswith("./")]
    assert mounted
    assert all((ROOT / path).exists() for path in mounted)


def test_the_published_ports_can_be_others() -> None:
    environment = {**SECRETS, "WEB_PORT": "1", "FLOWER_PORT": "2"}
    assert service("web", environment)["ports"] == ["127.0.0.1:1:8000"]
    assert service("flower", environment)["ports"] == ["127.0.0.1:2:5555"]


def test_several_webs_take_a_port_each_of_a_range() -> None:
    assert service("web", {**SECRETS, "WEB_PORT": "8000-8001"})["ports"] == ["127.0.0.1:8000-8001:8000"]
    assert {"container_name", "hostname"}.isdisjoint(service("web"))


@pytest.mark.parametrize("name", sorted({*OF_OURS, *RUNNING}))
def test_a_container_is_not_root_gains_no_rights_and_writes_only_where_it_must(name: str) -> None:
    found = service(name)
    assert found["read_only"] is True
    assert found["cap_drop"] == ["ALL"]
    assert found["security_opt"] == ["no-new-privileges:true"]
    assert "/tmp" in found["tmpfs"]  # noqa: S108  # The container's own.
    assert {"privileged", "cap_add", "network_mode", "pid"}.isdisjoint(found)
    # The image of ours has its user; those of the servers would start as root.
    assert found.get("user") == {"postgres": "postgres", "redis": "valkey"}.get(name)


@pytest.mark.parametrize("name", sorted(compose()["services"]))
def test_a_container_has_an_end_of_memory_and_processes_that_can_be_moved(name: str) -> None:
    assert re.fullmatch(r"\d+[mg]", service(name)["mem_limit"])
    assert service(name, {**SECRETS, f"{name.upper()}_MEMORY": "7g"})["mem_limit"] == "7g"
    assert int(service(name)["pids_limit"]) >= 2_048


def test_web_may_start_the_threads_of_all_its_processes() -> None:
    processes = 20
    assert int(service("web")["pids_limit"]) > processes * (THREADS + _OTHER_THREADS)
    assert service("web", {**SECRETS, "WEB_PIDS": "7"})["pids_limit"] == "7"


def test_redis_refuses_what_it_has_no_room_for_before_the_container_ends() -> None:
    [*_, command] = service("redis")["command"]
    [mib] = re.findall(r"--maxmemory (\d+)mb ", command)
    assert int(mib) <= 0.6 * 1_024
    assert service("redis")["mem_limit"] == "1g"


def test_what_must_last_lies_in_named_volumes() -> None:
    assert set(compose()["volumes"]) == {"postgres-data", "redis-data", "flower-data", "prometheus-data"}
    assert service("postgres")["volumes"] == ["postgres-data:/var/lib/postgresql"]
    assert service("redis")["volumes"] == ["redis-data:/data"]
    assert service("flower")["volumes"] == ["flower-data:/var/lib/flower"]
    assert service("flower")["environment"]["FLOWER_DB"].startswith("/var/lib/flower/")


def test_web_is_given_the_time_to_let_waiting_calls_finish() -> None:
    gateway = import_module("app.web.gunicorn")  # It reads the settings when it is imported.
    assert seconds(service("web")["stop_grace_period"]) > gateway.graceful_timeout


def test_a_delivering_worker_is_given_the_time_to_let_its_attempts_finish() -> None:
    assert seconds(service("deliveries")["stop_grace_period"]) > ATTEMPT_TIMEOUT_S


def test_a_worker_is_given_the_time_to_let_its_drains_finish() -> None:
    assert seconds(service("worker")["stop_grace_period"]) > TASK_TIME_LIMIT_S
