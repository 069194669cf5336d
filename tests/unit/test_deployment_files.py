"""The Procfile, the image and the compose file: they agree with each other, with `points up` and the settings."""

import json
import os
import re
import subprocess
import sys
import tomllib
from collections.abc import Mapping
from importlib import import_module
from pathlib import Path
from typing import Any

import pytest
import yaml

from app.local import parts
from app.local.supervisor import Part
from app.queue import TASK_TIME_LIMIT_S
from app.settings import Settings

ROOT = Path(__file__).parents[2]
SHELL = "/bin/sh"
SECRETS = {"POSTGRES_PASSWORD": "postgres1", "REDIS_PASSWORD": "redis2", "FLOWER_BASIC_AUTH": "user:flower3"}

_EVERYWHERE = "0.0.0.0"  # noqa: S104  # Compared with, and never bound to.
_OF_OURS = ("migrate", "web", "worker", "beat", "flower")
_RUNNING = ("postgres", "redis", "web", "worker", "beat", "flower")
_VARIABLE = re.compile(r"\$\$|\$\{(?P<name>\w+)(?:(?P<operator>:[-?])(?P<word>[^}]*))?\}")


class MissingVariableError(Exception):
    """A variable that the compose file requires is not set; the message is what the file says about it."""


def procfile() -> dict[str, str]:
    """Return the lines of the Procfile by their names."""
    lines = (ROOT / "Procfile").read_text().splitlines()
    return dict(line.split(": ", 1) for line in lines if line and not line.startswith("#"))


def compose(environment: Mapping[str, str] = SECRETS) -> dict[str, Any]:
    """Return the compose file as an engine sees it in this environment.

    Raises:
        MissingVariableError: a required variable is missing.
    """
    document: dict[str, Any] = _interpolated(_raw(), environment)
    return document


def service(name: str, environment: Mapping[str, str] = SECRETS) -> dict[str, Any]:
    found: dict[str, Any] = compose(environment)["services"][name]
    return found


def health_check(name: str) -> list[str]:
    """Return the command of a service's health check as an engine runs it."""
    form, *words = service(name)["healthcheck"]["test"]
    return [SHELL, "-c", *words] if form == "CMD-SHELL" else words


def image_command() -> list[str]:
    """Return the command of the image, which is also that of `web`."""
    command: list[str] = json.loads(_instructions("CMD")[-1])
    return command


def _raw() -> Any:
    return yaml.safe_load((ROOT / "docker-compose.yml").read_text())


def _interpolated(value: Any, environment: Mapping[str, str]) -> Any:
    if isinstance(value, dict):
        return {key: _interpolated(item, environment) for key, item in value.items()}
    if isinstance(value, list):
        return [_interpolated(item, environment) for item in value]
    if not isinstance(value, str):
        return value

    def replacement(match: re.Match[str]) -> str:
        name, operator, word = match["name"], match["operator"], match["word"]
        if name is None:
            return "$"
        if environment.get(name):
            return environment[name]
        if operator == ":?":
            raise MissingVariableError(f"{name}: {word}")
        return word or ""

    return _VARIABLE.sub(replacement, value)


def _variables() -> dict[str, set[tuple[str | None, str | None]]]:
    """Return each variable of the compose file with the operators and words that it is used with."""
    found: dict[str, set[tuple[str | None, str | None]]] = {}
    for match in _VARIABLE.finditer(json.dumps(_raw())):
        if match["name"]:
            found.setdefault(match["name"], set()).add((match["operator"], match["word"]))
    return found


def _instructions(name: str) -> list[str]:
    """Return what follows each instruction of that name in the Dockerfile, its lines joined."""
    lines = (line for line in (ROOT / "Dockerfile").read_text().splitlines() if not line.strip().startswith("#"))
    joined = "\n".join(lines).replace("\\\n", " ")
    return [" ".join(line.split()[1:]) for line in joined.splitlines() if line.startswith(f"{name} ")]


def _pyproject() -> dict[str, Any]:
    return tomllib.loads((ROOT / "pyproject.toml").read_text())


def _seconds(duration: str) -> int:
    assert re.fullmatch(r"\d+s", duration), f"{duration} is written in seconds everywhere"
    return int(duration[:-1])


def _run(line: str, folder: Path, **environment: str) -> subprocess.CompletedProcess[str]:
    """Run a line of the Procfile with stand-ins for its programs, which print the words they were given."""
    for program in ("gunicorn", "celery", "points"):
        stand_in = folder / program
        stand_in.write_text('#!/bin/sh\nprintf "%s\\n" "${0##*/}" "$@"\n')
        stand_in.chmod(0o755)
    path = f"{folder}:{os.environ['PATH']}"
    return subprocess.run(
        [SHELL, "-c", procfile()[line]],
        env={"PATH": path, "TMPDIR": str(folder), **environment},
        capture_output=True,
        text=True,
        check=False,
    )


def _words(line: str, folder: Path, **environment: str) -> list[str]:
    """Return the words of a line of the Procfile after its shell has expanded them."""
    finished = _run(line, folder, **environment)
    assert finished.returncode == 0, finished.stderr
    return finished.stdout.splitlines()


def _words_of(part: Part) -> list[str]:
    python, _, *words = list(part.command)
    assert python == sys.executable, "`points up` runs every part of ours as a module of its own Python"
    return words


# The Procfile.


def test_the_procfile_names_every_process() -> None:
    assert list(procfile()) == ["web", "worker", "beat", "flower", "release"]


def test_web_listens_on_port_8000_of_every_address_unless_told_otherwise(tmp_path: Path) -> None:
    assert _words("web", tmp_path)[-1] == f"{_EVERYWHERE}:8000"
    assert _words("web", tmp_path, PORT="9", WEB_ADDRESS="127.0.0.1")[-1] == "127.0.0.1:9"


def test_web_is_what_points_up_runs(tmp_path: Path) -> None:
    assert _words("web", tmp_path, WEB_ADDRESS="127.0.0.1") == _words_of(parts.web(8000))


def test_a_worker_is_what_points_up_runs(tmp_path: Path) -> None:
    assert _words("worker", tmp_path, WORKER_NAME="worker1") == _words_of(parts.worker(1))


def test_a_worker_has_as_many_processes_as_it_is_told(tmp_path: Path) -> None:
    words = _words("worker", tmp_path, WORKER_CONCURRENCY="11")
    assert words[words.index("--concurrency") + 1] == "11"


def test_beat_is_what_points_up_runs_and_answers_pings(tmp_path: Path) -> None:
    ours = _words_of(parts.beat())
    assert _words("beat", tmp_path) == [*ours, "--enable-remote-control", "--max-interval", "30"]


def test_flower_is_what_points_up_runs_on_the_loopback_address(tmp_path: Path) -> None:
    words = _words("flower", tmp_path, FLOWER_BASIC_AUTH="user:password")
    assert words == _words_of(parts.flower(5555, "password"))
    assert "--address=127.0.0.1" in words


def test_flower_listens_where_it_is_told(tmp_path: Path) -> None:
    words = _words("flower", tmp_path, FLOWER_BASIC_AUTH="user:password", FLOWER_ADDRESS="::1", FLOWER_PORT="9")
    assert {"--address=::1", "--port=9"} <= set(words)


@pytest.mark.parametrize("environment", [{}, {"FLOWER_BASIC_AUTH": ""}])
def test_flower_without_a_password_does_not_start_and_says_why(tmp_path: Path, environment: dict[str, str]) -> None:
    finished = _run("flower", tmp_path, **environment)
    assert finished.returncode != 0
    assert finished.stdout == ""
    assert "FLOWER_BASIC_AUTH: must be set to user:password, because" in finished.stderr


def test_the_password_of_flower_stands_in_no_list_of_processes(tmp_path: Path) -> None:
    assert "sesame" not in " ".join(_words("flower", tmp_path, FLOWER_BASIC_AUTH="user:sesame"))


def test_a_release_migrates(tmp_path: Path) -> None:
    assert _words("release", tmp_path) == ["points", "migrate"]


@pytest.mark.parametrize("name", ["web", "worker", "beat", "flower", "release"])
def test_a_line_of_the_procfile_becomes_its_program(name: str) -> None:
    last_command = procfile()[name].rpartition(" && ")[2]
    assert last_command.startswith("exec "), "a signal to the line would end its shell and not the program"


# The image.


def test_the_image_runs_web_as_the_procfile_does() -> None:
    assert image_command() == ["sh", "-c", procfile()["web"]]


def test_the_image_does_not_run_as_root() -> None:
    last_stage = (ROOT / "Dockerfile").read_text().rpartition("\nFROM ")[2]
    assert re.findall(r"^USER (.*)$", last_stage, re.MULTILINE) == ["10001:10001"]


def test_both_stages_are_the_slim_python_that_the_locks_are_made_for() -> None:
    version = _pyproject()["project"]["requires-python"].removeprefix(">=")
    assert [base.split()[0] for base in _instructions("FROM")] == [f"python:{version}-slim-trixie"] * 2
    assert f"--python-version {version} " in (ROOT / "Makefile").read_text()


def test_what_the_image_installs_is_pinned_by_hashes_and_the_project_adds_nothing() -> None:
    installs = re.findall(r"pip install ([^&]*)", " && ".join(_instructions("RUN")))
    assert [install.strip() for install in installs] == [
        "--require-hashes --requirement requirements.lock",
        "--no-deps --no-build-isolation .",
    ]


def test_the_image_has_no_embedded_servers() -> None:
    embedded = _pyproject()["project"]["optional-dependencies"]["embedded"]
    removed = " ".join(re.findall(r"pip uninstall --yes ([^&]*)", " && ".join(_instructions("RUN")))).split()
    assert set(embedded) <= set(removed)


def test_the_image_is_built_from_every_package_and_the_builder_is_sent_nothing_else() -> None:
    sources = {source for copied in _instructions("COPY") if "--from" not in copied for source in copied.split()[:-1]}
    packages = {name.rstrip("*") for name in _pyproject()["tool"]["setuptools"]["packages"]["find"]["include"]}
    assert sources == packages | {"requirements.lock", "pyproject.toml", "README.md"}
    rules = [line for line in (ROOT / ".dockerignore").read_text().splitlines() if not line.startswith("#")]
    assert rules[0] == "*"
    assert {rule.removeprefix("!") for rule in rules if rule.startswith("!")} == sources


# The compose file.


def test_the_compose_file_is_valid_by_the_published_schema() -> None:
    finished = subprocess.run(
        [sys.executable, "-m", "check_jsonschema", "--builtin-schema", "vendor.compose-spec", "docker-compose.yml"],
        cwd=ROOT,
        capture_output=True,
        text=True,
        check=False,
    )
    assert finished.returncode == 0, finished.stdout + finished.stderr


def test_the_compose_file_states_no_version_because_the_specification_has_none() -> None:
    assert "version" not in _raw()


@pytest.mark.parametrize("secret", SECRETS)
def test_nothing_starts_without_each_secret(secret: str) -> None:
    with pytest.raises(MissingVariableError, match=f"^{secret}: set it in .env to "):
        compose({**SECRETS, secret: ""})


def test_no_secret_has_a_default() -> None:
    variables = _variables()
    secret = {name for name in variables if re.search("PASSWORD|AUTH|SECRET|KEY", name)}
    assert secret == set(SECRETS)
    assert {operator for name in secret for operator, _ in variables[name]} == {":?"}


def test_a_secret_reaches_only_who_needs_it() -> None:
    holders = {
        secret: {name for name in compose()["services"] if secret in json.dumps(service(name))}
        for secret in SECRETS.values()
    }
    assert holders == {
        "postgres1": {"postgres", *_OF_OURS},
        "redis2": {"redis", *_OF_OURS},
        "user:flower3": {"flower"},
    }


def test_a_secret_stands_in_no_command_that_a_list_of_processes_shows() -> None:
    for name in compose()["services"]:
        command = json.dumps([service(name).get("command"), service(name).get("healthcheck")])
        assert [secret for secret in SECRETS.values() if secret in command] == []


@pytest.mark.parametrize("name", _OF_OURS)
def test_every_setting_is_passed_to_every_part_of_ours(name: str) -> None:
    urls = ("database_url", "redis_url")
    settings = {f"POINTS_{field.upper()}" for field in Settings.model_fields if field not in urls}
    environment = service(name)["environment"]
    assert {key for key in environment if key.startswith("POINTS_")} == settings
    assert [environment[key] for key in settings] == [None] * len(settings), "one without a value keeps its default"


@pytest.mark.parametrize("name", _OF_OURS)
def test_every_part_of_ours_uses_the_servers_of_the_compose_file(name: str) -> None:
    environment = service(name)["environment"]
    assert environment["DATABASE_URL"] == "postgresql://points:postgres1@postgres:5432/points"
    assert environment["REDIS_URL"] == "redis://:redis2@redis:6379/0"


def test_the_service_is_made_of_these_containers() -> None:
    assert set(compose()["services"]) == {*_OF_OURS, *_RUNNING}


@pytest.mark.parametrize("name", ["worker", "beat", "flower"])
def test_a_container_runs_what_the_procfile_runs(name: str, tmp_path: Path) -> None:
    there = service(name)["command"]
    ours = _words(name, tmp_path, FLOWER_BASIC_AUTH="user:password", FLOWER_ADDRESS=_EVERYWHERE)
    assert there == ours


def test_migrate_runs_what_a_release_runs(tmp_path: Path) -> None:
    assert service("migrate")["command"] == _words("release", tmp_path)


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
    assert {service(name)["image"] for name in _OF_OURS} == {"points-issuing-service"}
    assert [name for name in compose()["services"] if "build" in service(name)] == ["migrate"]
    assert {service(name)["pull_policy"] for name in _OF_OURS} == {"never"}


@pytest.mark.parametrize("name", ["postgres", "redis"])
def test_a_server_is_pinned_to_a_major_version(name: str) -> None:
    assert re.fullmatch(r"[a-z/]+:\d+", service(name)["image"])


def test_postgresql_is_new_enough() -> None:
    assert int(service("postgres")["image"].rpartition(":")[2]) >= 15


@pytest.mark.parametrize("name", _RUNNING)
def test_every_container_that_keeps_running_has_a_health_check_and_is_started_again(name: str) -> None:
    check = service(name)["healthcheck"]
    assert check["test"][0] in ("CMD", "CMD-SHELL")
    assert _seconds(check["timeout"]) <= _seconds(check["interval"])
    assert check["retries"] >= 3
    assert _seconds(check["start_period"]) >= 30
    assert service(name)["restart"] == "unless-stopped"


def test_migrate_runs_once() -> None:
    assert service("migrate")["restart"] == "no"
    assert "healthcheck" not in service("migrate")


@pytest.mark.parametrize("name", ["web", "worker", "beat", "flower"])
def test_nothing_of_ours_starts_before_the_tables_and_the_servers_are_there(name: str) -> None:
    assert {other: wanted["condition"] for other, wanted in service(name)["depends_on"].items()} == {
        "migrate": "service_completed_successfully",
        "postgres": "service_healthy",
        "redis": "service_healthy",
    }


def test_migrate_waits_for_postgresql() -> None:
    assert service("migrate")["depends_on"] == {"postgres": {"condition": "service_healthy"}}


def test_only_web_and_flower_are_published_and_only_on_the_loopback_address() -> None:
    published = {name: service(name)["ports"] for name in compose()["services"] if "ports" in service(name)}
    assert published == {"web": ["127.0.0.1:8000:8000"], "flower": ["127.0.0.1:5555:5555"]}


def test_the_published_ports_can_be_others() -> None:
    environment = {**SECRETS, "WEB_PORT": "1", "FLOWER_PORT": "2"}
    assert service("web", environment)["ports"] == ["127.0.0.1:1:8000"]
    assert service("flower", environment)["ports"] == ["127.0.0.1:2:5555"]


@pytest.mark.parametrize("name", sorted({*_OF_OURS, *_RUNNING}))
def test_a_container_is_not_root_gains_no_rights_and_writes_only_where_it_must(name: str) -> None:
    found = service(name)
    assert found["read_only"] is True
    assert found["cap_drop"] == ["ALL"]
    assert found["security_opt"] == ["no-new-privileges:true"]
    assert "/tmp" in found["tmpfs"]  # noqa: S108  # The container's own.
    assert {"privileged", "cap_add", "network_mode", "pid"}.isdisjoint(found)
    # The image of ours has its user; those of the servers would start as root.
    assert found.get("user") == {"postgres": "postgres", "redis": "valkey"}.get(name)


def test_what_must_last_lies_in_named_volumes() -> None:
    assert set(compose()["volumes"]) == {"postgres-data", "redis-data"}
    assert service("postgres")["volumes"] == ["postgres-data:/var/lib/postgresql"]
    assert service("redis")["volumes"] == ["redis-data:/data"]


def test_web_is_given_the_time_to_let_waiting_calls_finish() -> None:
    gateway = import_module("app.api.gateway")  # It reads the settings when it is imported.
    assert _seconds(service("web")["stop_grace_period"]) > gateway.graceful_timeout


def test_a_worker_is_given_the_time_to_let_its_drains_finish() -> None:
    assert _seconds(service("worker")["stop_grace_period"]) > TASK_TIME_LIMIT_S
