"""Two web processes share the connections evenly, and one that is frozen, or killed, holds up nobody else."""

import signal
import socket
import time
from contextlib import ExitStack, suppress
from pathlib import Path

import psutil
import pytest

from app.local import ports
from tests.deadline import comes_true, until
from tests.operations.deployment import STARTED_IN_S, deployment

pytestmark = pytest.mark.usefixtures("broker", "database")

_CALLERS = 20
# Of nobody's calls that another process could have answered. A machine that many share takes its time.
_ANSWERED_IN_S = 10


def test_callers_are_shared_evenly_and_nobody_waits_for_a_process_that_is_frozen_or_was_killed(tmp_path: Path) -> None:
    with deployment(tmp_path, WEB_CONCURRENCY="2") as parts, ExitStack() as callers:
        port = ports.any_free()
        web = psutil.Process(parts.web(port).pid)

        def call() -> socket.socket:
            return callers.enter_context(socket.create_connection((ports.HOST, port), timeout=_ANSWERED_IN_S))

        assert comes_true(lambda: len(held(web, port)) == 2, within_s=STARTED_IN_S)
        assert comes_true(lambda: sum(held(web, port).values()) == 0, within_s=STARTED_IN_S)
        for _ in range(_CALLERS):
            call()
        until(lambda: sorted(held(web, port).values()) == [_CALLERS / 2, _CALLERS / 2], "half of them each")

        frozen, _ = held(web, port)
        callers.callback(wake, frozen)
        psutil.Process(frozen).suspend()
        began = time.monotonic()
        for _ in range(_CALLERS):
            assert is_answered(call()), "a caller waits for the frozen process"
        assert time.monotonic() - began < _ANSWERED_IN_S

        psutil.Process(frozen).kill()
        assert is_answered(call())

        def the_new_one_has_as_many() -> bool:
            assert is_answered(call())
            now_held = held(web, port)
            return frozen not in now_held and len(now_held) == 2 and len(set(now_held.values())) == 1

        assert comes_true(the_new_one_has_as_many, within_s=STARTED_IN_S)


def held(master: psutil.Process, port: int) -> dict[int, int]:
    """Return how many connections of callers each web process holds, by its number."""
    seen = {}
    for child in master.children():
        with suppress(psutil.NoSuchProcess):  # It has just ended.
            seen[child.pid] = sum(
                connection.status == psutil.CONN_ESTABLISHED and connection.laddr.port == port
                for connection in child.net_connections("tcp")
            )
    return seen


def is_answered(caller: socket.socket) -> bool:
    caller.sendall(b"GET /healthz HTTP/1.1\r\nHost: points\r\n\r\n")
    try:
        return caller.recv(100).startswith(b"HTTP/1.1 200")
    except TimeoutError:
        return False


def wake(pid: int) -> None:
    """Let a frozen process hear that it shall end, where the test has failed."""
    if psutil.pid_exists(pid):
        psutil.Process(pid).send_signal(signal.SIGCONT)
