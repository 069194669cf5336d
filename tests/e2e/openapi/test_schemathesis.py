"""schemathesis makes calls from `/openapi.json`, good ones and bad ones, and finds no answer that is not described."""

import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.service.inside import Service
from tests.service.run import of_the_run
from tests.service.shared import shared

_HERE = Path(__file__).parent
# The keys that make all calls, by their kinds: what they are made with.
_KEYS: dict[str, dict[str, Any]] = {
    "live": {},
    "development": {"sandbox": True, "batch_limit": 10**12, "daily_limit": 10**15, "expires_at": "2100-01-01"},
    "with one scope": {"scopes": ["send"]},
}
# What a key of the other kind is answered, the first of each kind tries.
_OF_ORGANIZATIONS = ("--exclude-path-regex", "^/v1/platform/")
_OF_THE_PLATFORM = ("--include-path-regex", "^/v1/platform/")
# About a minute on a machine of its own.
_FINISHED_IN_S = 1_800


@pytest.fixture(scope="module")
def brief(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Service]:
    """Give a service whose longest list is soon made up: bounds of 10,000 recipients would take half of the time."""
    with shared(of_the_run(tmp_path_factory.getbasetemp(), "brief"), Service, POINTS_RECIPIENTS_MAX="40") as running:
        yield running


@pytest.mark.long
@pytest.mark.timeout(_FINISHED_IN_S + 60)
@pytest.mark.parametrize("kind", _KEYS)
def test_schemathesis_finds_nothing_valid_refused_and_nothing_invalid_accepted(
    brief: Service, tmp_path: Path, kind: str
) -> None:
    caller = brief.organization(1_000_000_000_000, sandbox_balance=1_000_000_000_000)
    made = brief.platform("POST", f"organizations/{caller.id}/keys", name=kind, **_KEYS[kind])
    _try_out(brief, made["key"], tmp_path, *(() if kind == "live" else _OF_ORGANIZATIONS))


@pytest.mark.long
@pytest.mark.timeout(_FINISHED_IN_S + 60)
def test_nor_with_a_key_of_the_platform_that_may_read_users(brief: Service, tmp_path: Path) -> None:
    _try_out(brief, _platform_key(brief, "--scope", "users:read"), tmp_path, *_OF_THE_PLATFORM)


@pytest.mark.long
@pytest.mark.timeout(_FINISHED_IN_S + 60)
def test_nor_with_a_key_of_the_platform_that_may_all(tmp_path: Path) -> None:
    """It disables organizations, revokes keys and erases users, of whomever: so it has a service of its own."""
    with Service(tmp_path / "points", POINTS_RECIPIENTS_MAX="40").running() as own:
        _try_out(own, _platform_key(own), tmp_path)


def _platform_key(service: Service, *options: str) -> str:
    key: str = service.json("platform-keys", "create", "Tried", *options)["key"]
    return key


def _try_out(service: Service, key: str, folder: Path, *paths: str) -> None:
    """Make all calls of these paths with this key."""
    done = subprocess.run(
        [
            *(sys.executable, "-m", "schemathesis.cli"),
            *("--config-file", str(_HERE / "schemathesis.toml"), "run", f"{service.url}/openapi.json"),
            *("--header", f"Authorization: Bearer {key}", "--no-color", *paths),
        ],
        cwd=folder,
        env=service.environment
        | {"SCHEMATHESIS_HOOKS": "tests.e2e.openapi.hooks", "PYTHONPATH": str(_HERE.parents[2])},
        capture_output=True,
        text=True,
        timeout=_FINISHED_IN_S,
        check=False,
    )
    assert done.returncode == 0, done.stdout + done.stderr
