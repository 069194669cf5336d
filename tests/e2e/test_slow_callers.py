"""Callers that are slow, silent or deaf, 200 at once: everybody else is answered, and they are gone in time."""

import contextlib
import resource
import socket
import threading
import time
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from http.client import HTTPConnection
from pathlib import Path

import psutil
import pytest

from app.local import ports
from tests.deadline import until
from tests.integration import books
from tests.ports import free_port
from tests.service.deployment import deployment

pytestmark = pytest.mark.usefixtures("broker", "database")

_CALLERS = 200
_ANSWERED_WITHIN_S = 1.0
# Whoever holds the others up does so again and again; a machine that is busy elsewhere makes one answer slow.
_ASKED_AGAIN = 5
_ASKED_EVERY_S = 0.2
_DRIPS_EVERY_S = 1.0
# So many connections a process takes.
_TAKES = 800
# For the caller to close its side, and for a busy machine.
_CLOSED_WITHIN_S = 8.0


@dataclass(frozen=True, kw_only=True)
class Slow:
    """What a slow caller sends, whether a byte follows each second, and how long it may go on like that."""

    sends: bytes
    drips: bool = False
    for_s: float = 0.0


_HEAD = b"POST /v1/points/verify HTTP/1.1\r\nHost: points\r\nContent-Type: application/json\r\n"
_ALLOWED = _HEAD + b"Authorization: Bearer <KEY>\r\n"
_CHUNKED = b"Transfer-Encoding: chunked\r\n\r\nffff\r\n{"
_REQUEST_S, _STALLED_S = 20.0, 30.0

_KINDS = {
    "silent": Slow(sends=b"", for_s=_REQUEST_S),
    "a head that drips": Slow(sends=_HEAD + b"X-Drip: ", drips=True, for_s=_REQUEST_S),
    "a body that stops": Slow(sends=_ALLOWED + b"Content-Length: 1000\r\n\r\n{", for_s=_REQUEST_S),
    "a body that drips": Slow(sends=_ALLOWED + b"Content-Length: 1000\r\n\r\n{", drips=True, for_s=_REQUEST_S),
    "chunks that drip": Slow(sends=_ALLOWED + _CHUNKED, drips=True, for_s=_REQUEST_S),
    "a body that nobody reads": Slow(sends=_HEAD + b"Content-Length: 1000\r\n\r\n{", drips=True, for_s=_REQUEST_S),
    # More of them than find room in the system's buffers; the caller's own are small.
    "answers not read": Slow(sends=b"GET /openapi.json HTTP/1.1\r\nHost: points\r\n\r\n" * 8, for_s=_STALLED_S),
    "an end not heard": Slow(sends=b"GET /healthz HTTP/1.1\r\nHost: points\r\nConnection: close\r\n\r\n"),
    "no request, and no end": Slow(sends=b"NONSENSE\r\n\r\n"),
}


@pytest.fixture(autouse=True)
def _files_for_all_callers() -> Iterator[None]:
    limit, most = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(resource.RLIMIT_NOFILE, (max(limit, min(4_096, most)), most))
    yield
    resource.setrlimit(resource.RLIMIT_NOFILE, (limit, most))


class Web:
    """A web process, and what becomes of the callers that are slow with it, and of one more who is not."""

    def __init__(self, port: int, process: psutil.Process) -> None:
        self.port = port
        self._process = process
        self._called_at = 0.0
        self.is_held_up = False
        self.gone_after_s: float | None = None

    def call(self, opened: ExitStack, kinds: list[Slow], key: bytes) -> list[socket.socket]:
        """Let 200 callers call, of each kind as many, and return those that drip."""
        self._called_at = time.monotonic()
        dripping = []
        for number in range(_CALLERS):
            caller = opened.enter_context(socket.socket())
            caller.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4_096)
            caller.setsockopt(socket.IPPROTO_TCP, socket.TCP_MAXSEG, 536)
            caller.connect((ports.HOST, self.port))
            kind = kinds[number % len(kinds)]
            caller.sendall(kind.sends.replace(b"<KEY>", key))
            if kind.drips:
                dripping.append(caller)
        return dripping

    def look(self) -> None:
        """Ask for an answer, and see whether slow callers are still there."""
        for _ in range(_ASKED_AGAIN):
            if self._is_answered():
                break
        else:
            self.is_held_up = True
        if self.gone_after_s is None and self.holds() == 0:
            self.gone_after_s = time.monotonic() - self._called_at

    def _is_answered(self) -> bool:
        with contextlib.closing(HTTPConnection(ports.HOST, self.port, timeout=_ANSWERED_WITHIN_S)) as asking:
            try:
                asking.request("GET", "/healthz", headers={"Connection": "close"})
                return asking.getresponse().status == 200
            except TimeoutError:
                return False

    def holds(self) -> int:
        """Return how many callers it holds a connection with."""
        held = self._process.net_connections("tcp")
        return sum(connection.laddr.port == self.port and bool(connection.raddr) for connection in held)


@contextmanager
def _dripping(callers: list[socket.socket]) -> Iterator[None]:
    over = threading.Event()

    def drip() -> None:
        while not over.wait(_DRIPS_EVERY_S):
            for caller in callers:
                with contextlib.suppress(OSError):  # It has been sent away.
                    caller.sendall(b"1")

    dripper = threading.Thread(target=drip)
    dripper.start()
    try:
        yield
    finally:
        over.set()
        dripper.join()


@pytest.mark.alone
def test_two_hundred_slow_callers_keep_nobody_waiting_and_are_gone_in_time(tmp_path: Path) -> None:
    crowds = {name: [kind] for name, kind in _KINDS.items()} | {"all of them": list(_KINDS.values())}
    key = books.make_live_key(books.make_organization(1_000)).encode()
    with deployment(tmp_path) as parts, ExitStack() as opened:
        webs = {}
        for name in crowds:
            port = free_port()
            [process] = psutil.Process(parts.web(port).pid).children()
            webs[name] = Web(port, process)
        callers = [caller for name, web in webs.items() for caller in web.call(opened, crowds[name], key)]
        opened.enter_context(_dripping(callers))
        began = time.monotonic()
        while time.monotonic() - began < _STALLED_S + 2 * _CLOSED_WITHIN_S:
            for web in webs.values():
                web.look()
            if None not in {web.gone_after_s for web in webs.values()}:
                break
            time.sleep(_ASKED_EVERY_S)
        assert [name for name, web in webs.items() if web.is_held_up] == []
        allowed_s = {name: max(kind.for_s for kind in kinds) + _CLOSED_WITHIN_S for name, kinds in crowds.items()}
        gone = {name: web.gone_after_s for name, web in webs.items()}
        assert {name: after for name, after in gone.items() if after is None or after >= allowed_s[name]} == {}
        assert parts.deaths() == {}


@pytest.mark.skipif(not hasattr(psutil, "RLIMIT_NOFILE"), reason="only Linux limits the files of another process")
def test_more_callers_than_a_process_takes_neither_end_it_nor_are_lost(tmp_path: Path) -> None:
    with deployment(tmp_path) as parts, ExitStack() as opened:
        port = free_port()
        master = psutil.Process(parts.web(port).pid)
        [process] = master.children()
        process.rlimit(psutil.RLIMIT_NOFILE, (1_024, 1_024))  # As many systems admit.
        callers = [
            opened.enter_context(socket.create_connection((ports.HOST, port), timeout=_STALLED_S)) for _ in range(1_000)
        ]
        until(lambda: Web(port, process).holds() >= _TAKES)
        for caller in callers[:100]:
            caller.sendall(b"GET /healthz HTTP/1.1\r\nHost: points\r\nConnection: close\r\n\r\n")
        for caller in callers[100:]:
            caller.close()
        for caller in callers[:100]:
            assert caller.recv(100).startswith(b"HTTP/1.1 200 ")
        assert master.children() == [process]
