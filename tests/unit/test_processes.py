"""Web and Flower as processes: what stops their start, what they set, and how web reads and answers a caller."""

import importlib
import socket
import sys
import threading
import time
from collections.abc import Callable, Iterator
from importlib import import_module
from types import ModuleType
from typing import Any

import pytest

from app.local import parts
from tests.deadline import TIMEOUT_S


@pytest.fixture
def gateway() -> Iterator[ModuleType]:
    """Return the module read anew, because it checks the settings as soon as it is read."""
    sys.modules.pop("app.web.gunicorn", None)
    yield importlib.import_module("app.web.gunicorn")
    sys.modules.pop("app.web.gunicorn", None)


@pytest.mark.parametrize("wait_s", ["0", "25", "600"])
def test_points_up_lets_web_answer_whoever_waits_before_it_kills_it(
    monkeypatch: pytest.MonkeyPatch, request: pytest.FixtureRequest, wait_s: str
) -> None:
    monkeypatch.setenv("POINTS_WAIT_S", wait_s)
    gateway: ModuleType = request.getfixturevalue("gateway")
    assert parts.web(8000).stop_timeout_s > gateway.graceful_timeout > float(wait_s)


def test_a_caller_on_a_slow_line_gets_all_of_a_large_answer(monkeypatch: pytest.MonkeyPatch) -> None:
    """Longer than a caller that reads nothing is waited for."""
    module = import_module("app.web.caller_socket")  # Its package reads the settings when it is imported.
    monkeypatch.setattr(module, "_STALLED_S", 1.0)
    caller, ours = socket.socketpair()
    for end in (caller, ours):
        end.setsockopt(socket.SOL_SOCKET, socket.SO_SNDBUF, 4_096)
    with caller, module.CallerSocket(fileno=ours.detach()) as served:

        def send() -> None:
            served.sendall(bytes(100_000))
            served.shutdown(socket.SHUT_WR)

        sending, read = threading.Thread(target=send), 0
        sending.start()
        while received := caller.recv(65_536):
            read += len(received)
            time.sleep(0.2)
        sending.join(TIMEOUT_S)
        assert read == 100_000


_ADDRESS = "--address=0.0.0.0"


@pytest.fixture
def require_password() -> Callable[..., Any]:
    """Import it only now: importing the worker ends a process that has no settings yet."""
    guard: Callable[..., Any] = import_module("worker.watching")._require_password
    return guard


@pytest.mark.parametrize(
    ("arguments", "variables"),
    [
        *(([], {}), ([_ADDRESS], {}), ([_ADDRESS], {"FLOWER_BASIC_AUTH": ""}), ([], {"FLOWER_ADDRESS": "192.0.2.1"})),
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
        *(
            ([_ADDRESS, "--basic_auth=user:password"], {}),
            (["--address=127.0.0.1"], {}),
            ([], {"FLOWER_ADDRESS": "::1"}),
        ),
    ],
)
def test_a_password_or_the_loopback_address_lets_it_start(
    require_password: Callable[..., Any], arguments: list[str], variables: dict[str, str]
) -> None:
    require_password(["celery", "flower", *arguments], variables)
