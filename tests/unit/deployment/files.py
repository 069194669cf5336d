"""What the Procfile, the image and the compose file say, read as the programs that use them read them."""

import json
import re
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import yaml

ROOT = Path(__file__).parents[3]
SHELL = "/bin/sh"
SECRETS = {"POSTGRES_PASSWORD": "postgres1", "REDIS_PASSWORD": "redis2", "FLOWER_BASIC_AUTH": "user:flower3"}

OF_OURS = ("migrate", "web", "worker", "deliveries", "beat", "flower")
RUNNING = ("postgres", "redis", "web", "worker", "deliveries", "beat", "flower")
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
    document: dict[str, Any] = _interpolated(raw_compose(), environment)
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
    command: list[str] = json.loads(instructions("CMD")[-1])
    return command


def raw_compose() -> Any:
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


def sections(page: str) -> dict[str, str]:
    """Return what stands below each heading of a page in docs, up to the next."""
    _, *parts = re.split(r"^#+ (.*)\n", (ROOT / "docs" / page).read_text(), flags=re.MULTILINE)
    return dict(zip(parts[::2], parts[1::2], strict=True))


def instructions(name: str) -> list[str]:
    """Return what follows each instruction of that name in the Dockerfile, its lines joined."""
    lines = (line for line in (ROOT / "Dockerfile").read_text().splitlines() if not line.strip().startswith("#"))
    joined = "\n".join(lines).replace("\\\n", " ")
    return [" ".join(line.split()[1:]) for line in joined.splitlines() if line.startswith(f"{name} ")]


def seconds(duration: str) -> int:
    assert re.fullmatch(r"\d+s", duration), f"{duration} is written in seconds everywhere"
    return int(duration[:-1])
