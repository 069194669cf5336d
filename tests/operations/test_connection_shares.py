"""Two web processes share the connections evenly, and one that is frozen, or killed, holds up nobody else."""

import socket
import time
from contextlib import ExitStack, suppress
from pathlib import Path

import psutil
import pytest

from app.local import ports
from tests.deadline import comes_true
from tests.operations.deployment import STARTED_IN_S, deployment

pytestmark = pytest.mark.usefixtures("broker", "database")

_CALLERS = 20
# A machine that stops one process for some milliseconds makes it uneven for a while; later calls go to who has fewer.
_CALLS_UNTIL_EVEN = 400
# Of nobody's calls that another process could have answered. A machine that many share takes its time.
_ANSWERED_IN_S = 10


def test_callers_are_shared_evenly_and_nobody_waits_for_a_process_that_is_frozen_or_was_killed(tmp_path: Path) -> None:
    with deployment(tmp_path, WEB_CONCURRENCY="2") as parts, ExitStack() as callers:
        port = ports.any_free()
        web = psutil.Process(parts.web(port).pid)

        def call() -> socket.socket:
            return callers.enter_context(socket.create_connection((ports.HOST, port), timeout=_ANSWERED_IN_S))

        def calls_until_even() -> None:
            """Call until so many calls in a row have left two processes with as many connections, or one more."""
            even_for = 0
            for _ in range(_CALLS_UNTIL_EVEN):
                assert is_answered(call())
                of_each = held(web, port).values()
                even_for = even_for + 1 if len(of_each) == 2 and max(of_each) - min(of_each) <= 1 else 0
                if even_for == _CALLERS:
                    return
            pytest.fail(f"not even after {_CALLS_UNTIL_EVEN} calls: {held(web, port)}")

        assert comes_true(lambda: len(held(web, port)) == 2, within_s=STARTED_IN_S)
        calls_until_even()

        frozen = psutil.Process(min(held(web, port)))
        callers.callback(wake, frozen)
        frozen.suspend()
        began = time.monotonic()
        for _ in range(_CALLERS):
            assert is_answered(call()), "a caller waits for the frozen process"
        assert time.monotonic() - began < _ANSWERED_IN_S

        frozen.kill()

        def another_takes_its_place() -> bool:
            of_each = held(web, port) if is_answered(call()) else {}
            return frozen.pid not in of_each and len(of_each) == 2 and min(of_each.values()) > 0

        assert comes_true(another_takes_its_place, within_s=STARTED_IN_S, every_s=0.2)
        calls_until_even()


def held(master: psutil.Process, port: int) -> dict[int, int]:
    """Return how many connections of callers each web process holds, by its number."""
    seen = {}
    for child in master.children():
        # It has just ended, or is about to: what a dying process holds, Linux shows to root alone.
        with suppress(psutil.NoSuchProcess, psutil.AccessDenied):
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


def wake(frozen: psutil.Process) -> None:
    """Let a frozen process hear that it shall end, where the test has failed."""
    with suppress(psutil.NoSuchProcess):
        frozen.resume()
