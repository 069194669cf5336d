"""Flower starts only where a password, or the loopback address, keeps strangers out; and it heeds a setting."""

import os
import subprocess
import sys
from collections.abc import Callable
from importlib import import_module
from typing import Any

import pytest

_ADDRESS = "--address=0.0.0.0"


@pytest.fixture
def require_password() -> Callable[..., Any]:
    """Import it only now: importing the worker ends a process that has no settings yet."""
    guard: Callable[..., Any] = import_module("worker.flower")._require_password
    return guard


@pytest.mark.parametrize("given", ["secret", "ada:secret,grace"])
def test_should_not_start_with_a_password_that_lets_nobody_in(require_password: Callable[..., Any], given: str) -> None:
    with pytest.raises(SystemExit, match="must be user:password"):
        require_password(["celery", "flower", "--address=127.0.0.1"], {"FLOWER_BASIC_AUTH": given})


@pytest.mark.parametrize(
    ("arguments", "variables"),
    [
        ([], {}),
        ([_ADDRESS], {}),
        (["--address=0.0.0.0", "--port=1"], {"FLOWER_BASIC_AUTH": ""}),
        ([], {"FLOWER_ADDRESS": "192.0.2.1"}),
        ([_ADDRESS], {"FLOWER_ADDRESS": "127.0.0.1"}),  # Its arguments win over the environment.
    ],
)
def test_should_not_start_where_anybody_could_look(
    require_password: Callable[..., Any], arguments: list[str], variables: dict[str, str]
) -> None:
    with pytest.raises(SystemExit, match="FLOWER_BASIC_AUTH"):
        require_password(["celery", "flower", *arguments], variables)


@pytest.mark.parametrize(
    ("arguments", "variables"),
    [
        ([_ADDRESS], {"FLOWER_BASIC_AUTH": "user:password"}),
        ([_ADDRESS, "--basic-auth=user:password"], {}),
        ([_ADDRESS, "--basic_auth=user:password"], {}),
        (["--address=127.0.0.1"], {}),
        ([], {"FLOWER_ADDRESS": "::1"}),
    ],
)
def test_a_password_or_the_loopback_address_lets_it_start(
    require_password: Callable[..., Any], arguments: list[str], variables: dict[str, str]
) -> None:
    require_password(["celery", "flower", *arguments], variables)


@pytest.mark.parametrize("events", ["true", "false"])
def test_it_tells_the_workers_to_report_only_where_the_setting_says_so(events: str) -> None:
    prepared = "from worker import flower; flower.prepare(['--address=127.0.0.1'], {})"
    shown = "from tornado.options import options; print(options.enable_events)"
    done = subprocess.run(
        [sys.executable, "-c", f"{prepared}; {shown}"],
        env=os.environ | {"POINTS_WORKER_EVENTS": events},
        capture_output=True,
        text=True,
        check=True,
    )
    assert done.stdout.strip() == str(events == "true")


def test_workers_that_are_gone_are_forgotten_unless_told_otherwise() -> None:
    code = "from worker import flower; flower.prepare(['--address=127.0.0.1'])"
    code += "; from tornado.options import options; print(options.purge_offline_workers)"
    done = subprocess.run([sys.executable, "-c", code], env=os.environ, capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "60"


def _start(port: str) -> subprocess.CompletedProcess[str]:
    """Prepare Flower as its own process does, and have it read its environment."""
    code = "from worker import flower; flower.prepare(['--address=127.0.0.1'])"
    code += "; from flower.command import apply_env_options; apply_env_options()"
    code += "; from tornado.options import options; print(options.port)"
    environment = os.environ | {"FLOWER_PORT": port}
    return subprocess.run([sys.executable, "-c", code], env=environment, capture_output=True, text=True, check=False)


@pytest.mark.parametrize(("given", "port"), [("tcp://10.0.0.7:5555", "5555"), ("", "5555"), ("9", "9")])
def test_it_starts_where_kubernetes_tells_of_a_service_of_its_name(given: str, port: str) -> None:
    started = _start(given)
    assert (started.stdout.strip(), started.stderr) == (port, "")


def test_should_not_start_with_a_port_that_is_none_and_says_so_in_one_sentence() -> None:
    refused = _start("flower")
    assert (refused.returncode, refused.stderr) == (1, "points: FLOWER_PORT must be the number of a port.\n")
