"""Web and Flower as processes: what stops their start, what they set, and how web reads and answers a caller."""

import importlib
import os
import socket
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator
from importlib import import_module
from types import ModuleType, SimpleNamespace
from typing import Any

import pytest

from app.local import parts
from app.postgres import connections
from tests.deadline import TIMEOUT_S, until


@pytest.fixture
def gateway() -> Iterator[ModuleType]:
    """Return the module read anew, because it checks the settings as soon as it is read."""
    sys.modules.pop("app.web.gunicorn", None)
    yield importlib.import_module("app.web.gunicorn")
    sys.modules.pop("app.web.gunicorn", None)


def test_a_wrong_setting_stops_the_start_with_its_sentence(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("POINTS_WAIT_S", "soon")
    monkeypatch.delitem(sys.modules, "app.web.gunicorn", raising=False)
    with pytest.raises(SystemExit, match=r"^points: The setting POINTS_WAIT_S is wrong: "):
        importlib.import_module("app.web.gunicorn")


@pytest.mark.parametrize("wait_s", ["0", "25", "600"])
def test_the_gateway_is_more_patient_than_any_wait(wait_s: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("POINTS_WAIT_S", wait_s)
    monkeypatch.delitem(sys.modules, "app.web.gunicorn", raising=False)
    gateway = importlib.import_module("app.web.gunicorn")
    assert float(wait_s) < gateway.graceful_timeout < gateway.timeout


@pytest.mark.parametrize(("asked", "kept_s"), [(None, 75), ("120", 120)])
def test_a_connection_is_kept_for_over_60_s(asked: str | None, kept_s: int, monkeypatch: pytest.MonkeyPatch) -> None:
    if asked is not None:
        monkeypatch.setenv("POINTS_KEEP_ALIVE_S", asked)
    monkeypatch.delitem(sys.modules, "app.web.gunicorn", raising=False)
    assert importlib.import_module("app.web.gunicorn").keepalive == kept_s


def test_web_takes_no_read_only_server_and_waits_briefly(gateway: ModuleType, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(connections, "_writable_only", False)
    monkeypatch.setattr(connections, "_answer_timeout_s", connections.ANSWER_TIMEOUT_S)
    monkeypatch.setattr(gateway, "watch_connections", lambda: None)
    gateway.post_fork(None, SimpleNamespace(core=None))
    assert (connections._writable_only, connections._answer_timeout_s) == (True, connections.FRONT_ANSWER_TIMEOUT_S)


def core_of_one_more(gateway: ModuleType, processes: int, *others: int | None) -> int | None:
    """Return the core for one more process beside others who keep to theirs, of a server of so many processes."""
    workers = {pid: SimpleNamespace(core=core) for pid, core in enumerate(others)}
    worker = SimpleNamespace()
    gateway.pre_fork(SimpleNamespace(num_workers=processes, WORKERS=workers), worker)
    core: int | None = worker.core
    return core


@pytest.mark.parametrize(
    ("cores", "processes", "others", "core"),
    [
        ({0, 1}, 2, [], 0),
        ({0, 1}, 2, [0], 1),
        ({0, 1}, 2, [1], 0),  # It replaces one that has died.
        ({0, 1}, 2, [0, 1], 0),  # While all are renewed, there are twice as many.
        ({0, 1}, 2, [0, 1, 0], 1),
        ({4, 6}, 3, [4, 6], 4),
        ({3}, 2, [3], 3),
        ({0, 1, 2, 3}, 2, [None], None),  # The system knows better which of them are free.
    ],
)
def test_a_process_keeps_to_the_least_used_core_where_there_is_a_process_for_each(
    gateway: ModuleType,
    monkeypatch: pytest.MonkeyPatch,
    cores: set[int],
    processes: int,
    others: list[int | None],
    core: int | None,
) -> None:
    monkeypatch.setattr("os.sched_getaffinity", lambda _: cores, raising=False)
    assert core_of_one_more(gateway, processes, *others) == core


def test_where_no_process_can_be_kept_to_a_core_none_is(gateway: ModuleType, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delattr("os.sched_getaffinity", raising=False)
    assert core_of_one_more(gateway, 2) is None


@pytest.mark.parametrize("wait_s", ["0", "25", "600"])
def test_points_up_lets_web_answer_whoever_waits_before_it_kills_it(
    monkeypatch: pytest.MonkeyPatch, request: pytest.FixtureRequest, wait_s: str
) -> None:
    monkeypatch.setenv("POINTS_WAIT_S", wait_s)
    gateway: ModuleType = request.getfixturevalue("gateway")
    assert parts.web(8000).stop_timeout_s > gateway.graceful_timeout > float(wait_s)


class Connected:
    """A connection with small buffers, whose caller reads 64 KiB whenever it is told to."""

    def __init__(self, caller_socket: ModuleType) -> None:
        self.caller, ours = socket.socketpair()
        for end in (self.caller, ours):
            end.setsockopt(socket.SOL_SOCKET, socket.SO_SNDBUF, 4_096)
        self.ours = caller_socket.CallerSocket(fileno=ours.detach())
        self.read = 0
        self.is_over = threading.Event()

    def read_every(self, seconds: float) -> None:
        while not self.is_over.wait(seconds):
            self.read += len(self.caller.recv(65_536))


@pytest.fixture
def caller_socket(monkeypatch: pytest.MonkeyPatch) -> ModuleType:
    """Return the module, made less patient; its package reads the settings when it is imported."""
    module = import_module("app.web.caller_socket")
    monkeypatch.setattr(module, "_STALLED_S", 1.0)
    return module


@pytest.fixture
def connected(caller_socket: ModuleType) -> Iterator[Connected]:
    one = Connected(caller_socket)
    with one.caller, one.ours:
        yield one


@pytest.fixture
def slow(connected: Connected) -> Iterator[Connected]:
    reader = threading.Thread(target=connected.read_every, args=(0.2,))
    reader.start()
    yield connected
    connected.is_over.set()
    reader.join(TIMEOUT_S)


def test_a_caller_on_a_slow_line_gets_all_of_a_large_answer(slow: Connected) -> None:
    """Three times as long as a caller that reads nothing is waited for."""
    slow.ours.sendall(bytes(200_000))
    slow.ours.shutdown(socket.SHUT_WR)
    until(lambda: slow.read == 200_000, "all of it is read")


def test_a_caller_that_reads_nothing_is_given_up(connected: Connected) -> None:
    began = time.monotonic()
    with pytest.raises(ConnectionResetError):
        connected.ours.sendall(bytes(200_000))
    assert time.monotonic() - began < 5


def test_a_caller_that_reads_too_slowly_is_given_up_at_last(
    slow: Connected, caller_socket: ModuleType, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(caller_socket, "_SLOWEST_BYTES_PER_S", 1_000_000_000)
    with pytest.raises(ConnectionResetError):
        slow.ours.sendall(bytes(10_000_000))


def test_what_comes_after_the_deadline_is_not_read_though_it_never_pauses(connected: Connected) -> None:
    connected.ours.read_until = time.monotonic() + 1.0
    connected.caller.sendall(b"G")
    assert connected.ours.recv(1) == b"G"
    with pytest.raises(ConnectionResetError):
        connected.ours.recv(1)
    connected.caller.sendall(b"ET")
    with pytest.raises(ConnectionResetError):
        connected.ours.recv(1)


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
