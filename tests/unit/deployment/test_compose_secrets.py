"""The compose file, as a document: valid, its secrets required and kept from who needs none, its settings passed on."""

import json
import re
import subprocess
import sys

import pytest

from app.settings import Settings
from tests.unit.deployment.files import (
    OF_OURS,
    ROOT,
    SECRETS,
    MissingVariableError,
    compose,
    compose_variables,
    raw_compose,
    service,
)


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
    assert "version" not in raw_compose()


@pytest.mark.parametrize("secret", SECRETS)
def test_nothing_starts_without_each_secret(secret: str) -> None:
    with pytest.raises(MissingVariableError, match=f"^{secret}: set it in .env to "):
        compose({**SECRETS, secret: ""})


def test_no_secret_has_a_default() -> None:
    variables = compose_variables()
    secret = {name for name in variables if re.search("PASSWORD|AUTH|SECRET|KEY", name)}
    assert secret == set(SECRETS)
    assert {operator for name in secret for operator, _ in variables[name]} == {":?"}


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


def test_a_secret_stands_in_no_command_that_a_list_of_processes_shows() -> None:
    for name in compose()["services"]:
        command = json.dumps([service(name).get("command"), service(name).get("healthcheck")])
        assert [secret for secret in SECRETS.values() if secret in command] == []


@pytest.mark.parametrize("name", OF_OURS)
def test_every_setting_is_passed_to_every_part_of_ours(name: str) -> None:
    urls = ("database_url", "redis_url")
    settings = {f"POINTS_{field.upper()}" for field in Settings.model_fields if field not in urls}
    environment = service(name)["environment"]
    assert {key for key in environment if key.startswith("POINTS_")} == settings
    assert [environment[key] for key in settings] == [None] * len(settings), "one without a value keeps its default"


@pytest.mark.parametrize("name", OF_OURS)
def test_every_part_of_ours_uses_the_servers_of_the_compose_file(name: str) -> None:
    environment = service(name)["environment"]
    assert environment["DATABASE_URL"] == "postgresql://points:postgres1@postgres:5432/points"
    assert environment["REDIS_URL"] == "redis://:redis2@redis:6379/0"
