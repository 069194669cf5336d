"""Callers that are slow, silent or deaf, many at once: everybody else is answered, and they are gone in time."""

import contextlib
import json
import resource
import socket
import sys
import threading
import time
from collections.abc import Iterable, Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from http.client import HTTPConnection
from pathlib import Path

import psutil
import pytest

from app.local import ports
from tests.deadline import TIMEOUT_S, until
from tests.integration import books
from tests.pace import slowness
from tests.ports import free_port
from tests.service.deployment import Deployment, deployment, is_ready

pytestmark = pytest.mark.usefixtures("broker", "database")

_CALLERS = 200
_ANSWERED_WITHIN_S = 1.0
# Whoever holds the others up does so again and again; a machine that is busy elsewhere makes one answer slow.
_ASKED_AGAIN = 5
_ASKED_EVERY_S = 0.2
_DRIPS_EVERY_S = 0.5
# So many connections a process takes.
_TAKES = 800
# For the caller to close its side, and for a busy machine.
_CLOSED_WITHIN_S = 8.0


@dataclass(frozen=True, kw_only=True)
class Slow:
    """What a slow caller sends, and whether bytes follow, half a second apart."""

    sends: bytes
    drips: bool = False


_HEAD = b"POST /v1/points/verify HTTP/1.1\r\nHost: points\r\nContent-Type: application/json\r\n"
_ALLOWED = _HEAD + b"Authorization: Bearer <KEY>\r\n"
_LENGTH = b"Content-Length: 1000\r\n"
_CHUNKED = b"Transfer-Encoding: chunked\r\n\r\n"
# Those of `tests.e2e.hurried_web`.
_REQUEST_S, _STALLED_S = 2.5, 4.0

# What is begun and never ended: as it is, and with a byte every half second behind it.
_BEGUN = {
    "half a word": b"POS",
    "half a head": _HEAD + b"X-Drip: ",
    "half a body": _ALLOWED + _LENGTH + b"\r\n{",
    "no body": _ALLOWED + _LENGTH + b"\r\n",
    "chunks without end": _ALLOWED + _CHUNKED + b"1\r\n{\r\n",
    "a chunk without end": _ALLOWED + _CHUNKED + b"ffff\r\n{",
    "half a size": _ALLOWED + _CHUNKED + b"F",
    "an expectation": _ALLOWED + b"Expect: 100-continue\r\n" + _LENGTH + b"\r\n",
    "the body of a GET": b"GET /v1/organization HTTP/1.1\r\nHost: points\r\n" + _LENGTH + b"\r\n",
    "a body that nobody reads": _HEAD + _LENGTH + b"\r\n{",
}
# Each crowd has a web process of its own, and may hold its callers for so long.
_CROWDS = {
    "who do not end what they begin": (
        _REQUEST_S,
        [
            Slow(sends=b""),
            *(Slow(sends=sends, drips=drips) for sends in _BEGUN.values() for drips in (False, True)),
        ],
    ),
    # More of them than find room in the system's buffers; the caller's own are small.
    "who do not read": (_STALLED_S, [Slow(sends=b"GET /openapi.json HTTP/1.1\r\nHost: points\r\n\r\n" * 8)]),
    "who do not go": (
        0.0,
        [
            Slow(sends=b"GET /healthz HTTP/1.1\r\nHost: points\r\nConnection: close\r\n\r\n"),
            Slow(sends=b"NONSENSE\r\n\r\n"),
        ],
    ),
}


@pytest.fixture(autouse=True)
def _files_for_all_callers() -> Iterator[None]:
    limit, most = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(resource.RLIMIT_NOFILE, (max(limit, min(8_192, most)), most))
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


def _webs(parts: Deployment, names: Iterable[str], *, module: str) -> dict[str, Web]:
    """Start a web process for each name, with the patience of a module; it may be called when it listens."""
    ports_of = {name: free_port() for name in names}
    command = [sys.executable, "-m", "gunicorn", "--config", f"python:{module}", "--bind"]
    started = {name: parts.add(name, [*command, f"{ports.HOST}:{port}"]) for name, port in ports_of.items()}
    for port in ports_of.values():
        until(lambda port=port: is_ready(port))
    return {name: Web(ports_of[name], psutil.Process(part.pid).children()[0]) for name, part in started.items()}


@pytest.mark.alone
def test_two_hundred_slow_callers_keep_nobody_waiting_and_are_gone_in_time(tmp_path: Path) -> None:
    key = books.make_live_key(books.make_organization(1_000)).encode()
    with deployment(tmp_path) as parts, ExitStack() as opened:
        webs = _webs(parts, _CROWDS, module="tests.e2e.hurried_web")
        closed_within_s = _CLOSED_WITHIN_S * slowness()
        callers = [caller for name, web in webs.items() for caller in web.call(opened, _CROWDS[name][1], key)]
        opened.enter_context(_dripping(callers))
        began = time.monotonic()
        while time.monotonic() - began < _STALLED_S + 2 * closed_within_s:
            for web in webs.values():
                web.look()
            if None not in {web.gone_after_s for web in webs.values()}:
                break
            time.sleep(_ASKED_EVERY_S)
        assert [name for name, web in webs.items() if web.is_held_up] == []
        gone = {name: web.gone_after_s for name, web in webs.items()}
        allowed_s = {name: for_s + closed_within_s for name, (for_s, _) in _CROWDS.items()}
        assert {name: after for name, after in gone.items() if after is None or after >= allowed_s[name]} == {}
        assert parts.deaths() == {}


@pytest.mark.skipif(not hasattr(psutil, "RLIMIT_NOFILE"), reason="only Linux limits the files of another process")
def test_more_silent_callers_than_a_process_takes_neither_end_it_nor_keep_others_waiting(tmp_path: Path) -> None:
    with deployment(tmp_path) as parts, ExitStack() as opened:
        port = free_port()
        master = psutil.Process(parts.web(port).pid)
        [process] = master.children()
        process.rlimit(psutil.RLIMIT_NOFILE, (1_024, 1_024))  # As many systems admit.
        callers = [opened.enter_context(socket.create_connection((ports.HOST, port), timeout=30)) for _ in range(1_000)]
        until(lambda: Web(port, process).holds() >= _TAKES)
        for caller in callers[-100:]:
            caller.sendall(b"GET /healthz HTTP/1.1\r\nHost: points\r\nConnection: close\r\n\r\n")
        for caller in callers[-100:]:
            assert caller.recv(100).startswith(b"HTTP/1.1 200 ")
        assert master.children() == [process]


# None of these is given up before the test ends, unless for who sends a whole request.
_HALVES = {
    "silent": b"",
    "half a head": _HEAD + b"X-Drip: ",
    "half a body with a key": _ALLOWED + _LENGTH + b"\r\n{",
    "half a body without a key": _HEAD + _LENGTH + b"\r\n{",
    "half a long body with a key": _ALLOWED + b"Content-Length: 500000\r\n\r\n{",
    "chunks without end": _ALLOWED + _CHUNKED + b"1\r\n{\r\n",
}
_AT_ONCE = 2_000


def test_two_thousand_who_send_halves_keep_no_send_waiting(tmp_path: Path) -> None:
    key = books.make_live_key(books.make_organization(1_000))
    with deployment(tmp_path) as parts:
        [web] = _webs(parts, ["web"], module="tests.e2e.patient_web").values()
        for sends in _HALVES.values():
            with ExitStack() as opened:
                for _ in range(_AT_ONCE):
                    caller = opened.enter_context(socket.create_connection((ports.HOST, web.port), timeout=TIMEOUT_S))
                    with contextlib.suppress(OSError):  # It gave way already.
                        caller.sendall(sends.replace(b"<KEY>", key.encode()))
                for recipients in (1, 5_000):
                    assert _send(web.port, key, recipients) == 202
        assert parts.deaths() == {}


def _send(port: int, key: str, recipients: int) -> int:
    headers = {"Authorization": f"Bearer {key}", "Content-Type": "application/json", "Prefer": "respond-async"}
    body = {"recipients": [f"ann+{number}@example.com" for number in range(recipients)], "amount": 1}
    with contextlib.closing(HTTPConnection(ports.HOST, port, timeout=TIMEOUT_S)) as sending:
        sending.request("POST", "/v1/points/send", json.dumps(body), headers)
        return sending.getresponse().status
