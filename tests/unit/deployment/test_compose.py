"""The compose file: valid, its secrets kept from who needs none; what its containers run, may, and have time for."""

import json
import subprocess
import sys
from pathlib import Path

import pytest

from app.settings import Settings
from tests.unit.deployment.files import (
    OF_OURS,
    ROOT,
    RUNNING,
    SECRETS,
    MissingVariableError,
    compose,
    seconds,
    service,
)
from tests.unit.deployment.lines import words_of_line


def test_the_compose_file_is_valid_by_the_published_schema() -> None:
    finished = subprocess.run(
        [sys.executable, "-m", "check_jsonschema", "--builtin-schema", "vendor.compose-spec", "docker-compose.yml"],
        cwd=ROOT,
        capture_output=True,
        text=True,
        check=False,
    )
    assert finished.returncode == 0, finished.stdout + finished.stderr


@pytest.mark.parametrize("secret", SECRETS)
def test_nothing_starts_without_each_secret(secret: str) -> None:
    with pytest.raises(MissingVariableError, match=f"^{secret}: set it in .env to "):
        compose({**SECRETS, secret: ""})


def test_a_secret_reaches_only_who_needs_it() -> None:
    holders = {
        secret: {name for name in compose()["services"] if secret in json.dumps(service(name))}
        for secret in SECRETS.values()
    }
    assert holders == {
        "postgres1": {"postgres", *OF_OURS},
        "redis2": {"redis", *OF_OURS},
        "user:flower3": {"flower"},
    }


@pytest.mark.parametrize("name", OF_OURS)
def test_every_setting_is_passed_to_every_part_of_ours(name: str) -> None:
    urls = ("database_url", "database_read_url", "redis_url")
    settings = {f"POINTS_{field.upper()}" for field in Settings.model_fields if field not in urls}
    environment = service(name)["environment"]
    assert {key for key in environment if key.startswith("POINTS_")} == settings
    assert [environment[key] for key in (*settings, "DATABASE_READ_URL")] == [None] * (len(settings) + 1), (
        "one without a value keeps its default"
    )


_EVERYWHERE = "0.0.0.0"  # noqa: S104  # Compared with, and never bound to.


@pytest.mark.parametrize("name", ["worker", "deliveries", "beat", "flower"])
def test_a_container_runs_what_the_procfile_runs(name: str, tmp_path: Path) -> None:
    there = service(name)["command"]
    ours = words_of_line(name, tmp_path, FLOWER_BASIC_AUTH="user:password", FLOWER_ADDRESS=_EVERYWHERE)
    assert there == ours


@pytest.mark.parametrize("name", sorted(set(compose()["services"]) - {"migrate", "backup"}))
def test_every_container_that_keeps_running_has_a_health_check_and_is_started_again(name: str) -> None:
    check = service(name)["healthcheck"]
    assert check["test"][0] in ("CMD", "CMD-SHELL")
    assert seconds(check["timeout"]) <= seconds(check["interval"])
    assert check["retries"] >= 3
    assert seconds(check["start_period"]) >= 30
    assert service(name)["restart"] == "unless-stopped"


@pytest.mark.parametrize("name", ["web", "worker", "deliveries", "beat", "flower"])
def test_nothing_of_ours_starts_before_the_tables_and_the_servers_are_there(name: str) -> None:
    assert {other: wanted["condition"] for other, wanted in service(name)["depends_on"].items()} == {
        "migrate": "service_completed_successfully",
        "postgres": "service_healthy",
        "redis": "service_healthy",
    }


def test_only_what_people_look_at_is_published_and_only_on_the_loopback_address() -> None:
    published = {name: service(name)["ports"] for name in compose()["services"] if "ports" in service(name)}
    assert published == {
        "web": ["127.0.0.1:8000:8000"],
        "flower": ["127.0.0.1:5555:5555"],
        "prometheus": ["127.0.0.1:9090:9090"],
        "alertmanager": ["127.0.0.1:9093:9093"],
        "grafana": ["127.0.0.1:3000:3000"],
    }


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
