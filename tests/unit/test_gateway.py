"""The gateway below the application: bytes that are no request are answered in the envelope too."""

import importlib
import json
import logging
import selectors
import socket
import sys
import threading
import time
from collections import deque
from collections.abc import Iterator
from concurrent.futures import Future
from contextlib import suppress
from types import ModuleType, SimpleNamespace

import pytest
from gunicorn.config import Config
from gunicorn.http.errors import (
    InvalidHeader,
    InvalidRequestLine,
    LimitRequestHeaders,
    LimitRequestLine,
    ParseException,
)

from app.local import parts
from app.log_output import Output
from tests.deadline import TIMEOUT_S


@pytest.fixture
def gateway() -> Iterator[ModuleType]:
    """Return the module read anew, because it checks the settings as soon as it is read."""
    sys.modules.pop("app.api.gateway", None)
    yield importlib.import_module("app.api.gateway")
    sys.modules.pop("app.api.gateway", None)


def answer_to(gateway: ModuleType, error: Exception) -> tuple[str, dict[str, str], bytes]:
    """Return what a peer whose bytes raised `error` reads: the first line, the headers and the rest."""
    worker = gateway.GatewayWorker.__new__(gateway.GatewayWorker)
    worker.log = logging.getLogger("gateway")
    worker.cfg = Config()
    peer, ours = socket.socketpair()
    with peer:
        with ours:
            worker.handle_error(None, ours, None, error)
        read = b"".join(iter(lambda: peer.recv(65_536), b""))
    head, _, body = read.partition(b"\r\n\r\n")
    first, *lines = head.decode().split("\r\n")
    return first, dict(line.split(": ", 1) for line in lines), body


@pytest.mark.parametrize(
    ("error", "sentence"),
    [
        (InvalidRequestLine("nonsense"), "The bytes sent are not a well-formed HTTP request."),
        (InvalidHeader("x"), "The bytes sent are not a well-formed HTTP request."),
        (LimitRequestLine(5000, 4094), "The request line must have at most 4094 bytes, but has more."),
        (LimitRequestHeaders("x"), "The headers must be at most 100, of at most 8190 bytes each, but are more."),
    ],
)
def test_bytes_that_are_no_request_are_answered_in_the_envelope(
    gateway: ModuleType, error: Exception, sentence: str
) -> None:
    first, headers, body = answer_to(gateway, error)
    assert first == "HTTP/1.1 400 Bad Request"
    length, _, rest = body.partition(b"\r\n")
    document = json.loads(rest[: int(length, 16)])
    assert rest[int(length, 16) :] == b"\r\n0\r\n\r\n"  # Chunked, and complete.
    assert list(document) == ["success", "data", "errors", "additional_data"]
    assert (document["success"], document["data"], document["additional_data"]) == (False, None, None)
    assert document["errors"] == {"request": [sentence]}
    assert headers["X-Request-Id"]
    assert headers["Content-Type"] == "application/json"


def test_such_a_400_carries_the_headers_of_the_interface_document(gateway: ModuleType) -> None:
    _, headers, _ = answer_to(gateway, InvalidRequestLine("nonsense"))
    named = ["Connection", "Date", "Server", "Cache-Control", "Vary", "Transfer-Encoding", "Content-Type", "Via"]
    assert set(named) <= set(headers)
    assert headers["Transfer-Encoding"] == "chunked"
    assert headers["Cache-Control"] == "no-store, private"
    assert headers["Vary"] == "Accept, Authorization"
    assert headers["Via"] == "1.1 points"
    assert not any(character.isdigit() for character in headers["Server"])  # It gives no version.


def test_a_peer_that_is_gone_is_no_error(gateway: ModuleType) -> None:
    worker = gateway.GatewayWorker.__new__(gateway.GatewayWorker)
    worker.log = logging.getLogger("gateway")
    peer, ours = socket.socketpair()
    peer.close()
    with ours:
        worker.handle_error(None, ours, None, InvalidRequestLine("nonsense"))


def test_a_wrong_setting_stops_the_start_with_its_sentence(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("POINTS_WAIT_S", "soon")
    monkeypatch.delitem(sys.modules, "app.api.gateway", raising=False)
    with pytest.raises(SystemExit, match=r"^points: The setting POINTS_WAIT_S is wrong: "):
        importlib.import_module("app.api.gateway")


@pytest.mark.parametrize("wait_s", ["0", "25", "600"])
def test_the_gateway_is_more_patient_than_any_wait(wait_s: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("POINTS_WAIT_S", wait_s)
    monkeypatch.delitem(sys.modules, "app.api.gateway", raising=False)
    gateway = importlib.import_module("app.api.gateway")
    assert float(wait_s) < gateway.graceful_timeout < gateway.timeout


def test_what_a_web_process_told_last_is_written_before_it_ends(
    gateway: ModuleType, monkeypatch: pytest.MonkeyPatch
) -> None:
    written: list[bytes] = []
    monkeypatch.setattr("os.write", lambda _, piece: written.append(piece))
    output = Output()
    output._is_waited_for = threading.Event()  # As after `write_together`, with a thread that does not come to it.
    monkeypatch.setattr(gateway.logs, "output", output)
    output.write_soon(b"the last\n")
    assert written == []
    gateway.worker_exit(None, None)
    assert written == [b"the last\n"]


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
    monkeypatch.setattr("os.sched_setaffinity", lambda *_: None, raising=False)
    assert core_of_one_more(gateway, processes, *others) == core


def test_where_no_process_can_be_kept_to_a_core_none_is(gateway: ModuleType, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delattr("os.sched_setaffinity", raising=False)
    assert core_of_one_more(gateway, 2) is None


@pytest.mark.parametrize("wait_s", ["0", "25", "600"])
def test_points_up_lets_web_answer_whoever_waits_before_it_kills_it(
    monkeypatch: pytest.MonkeyPatch, request: pytest.FixtureRequest, wait_s: str
) -> None:
    monkeypatch.setenv("POINTS_WAIT_S", wait_s)
    gateway: ModuleType = request.getfixturevalue("gateway")
    assert parts.web(8000).stop_timeout_s > gateway.graceful_timeout > float(wait_s)


@pytest.mark.parametrize(
    ("files", "raised_to", "connections"),
    [
        ((20_000, 20_000), [], 1_000),
        ((-1, -1), [], 1_000),
        ((1_024, 4_096), [(1_150, 4_096)], 1_000),
        ((256, -1), [(1_150, -1)], 1_000),
        ((256, 1_024), [(1_024, 1_024)], 874),
        ((1_024, 1_024), [], 874),
        ((100, 100), [], 1),
    ],
)
def test_a_process_is_admitted_the_files_it_needs_or_takes_fewer_connections(
    gateway: ModuleType,
    monkeypatch: pytest.MonkeyPatch,
    files: tuple[int, int],
    raised_to: list[tuple[int, int]],
    connections: int,
) -> None:
    raised: list[tuple[int, int]] = []
    monkeypatch.setattr("resource.RLIM_INFINITY", -1)  # A number of each system's own.
    monkeypatch.setattr("resource.getrlimit", lambda _: files)
    monkeypatch.setattr("resource.setrlimit", lambda _, limits: raised.append(limits))
    assert (gateway._connections_max(), raised) == (connections, raised_to)
    assert gateway.threads < gateway._CONNECTIONS_MAX


def test_a_connection_that_says_nothing_gets_no_thread_and_ends_with_the_process(gateway: ModuleType) -> None:
    worker = gateway.GatewayWorker.__new__(gateway.GatewayWorker)
    worker.pending_conns, worker.keepalived_conns = deque(), deque()
    submitted: list[object] = []

    def submit(_work: object, conn: object) -> Future[None]:
        submitted.append(conn)
        return Future()

    worker.tpool = SimpleNamespace(submit=submit)
    with selectors.DefaultSelector() as worker.poller:
        peer, ours = socket.socketpair()
        conn = SimpleNamespace(sock=ours, data_ready=False, initialized=False, timeout=None)
        with peer:
            worker.enqueue_req(conn)
            assert (submitted, list(worker.pending_conns)) == ([], [conn])
            assert conn.timeout > time.monotonic() + 10
            assert worker.poller.select(0) == []
            peer.sendall(b"G")
            [(key, _)] = worker.poller.select(TIMEOUT_S)
            key.data(key.fileobj)
            assert submitted == [conn]
            assert not worker.pending_conns
            worker.pending_conns.append(conn)
            worker._cap_keepalive(time.monotonic())
            assert conn.timeout <= time.monotonic()
        conn.sock.close()


class Ended:
    """A connection whose request is answered and which is not kept, in a worker of its own; `peer` is its caller."""

    def __init__(self, gateway: ModuleType) -> None:
        self.worker = gateway.GatewayWorker.__new__(gateway.GatewayWorker)
        self.worker.pending_conns, self.worker.lingering_conns = deque(), deque()
        self.worker.poller = selectors.DefaultSelector()
        self.worker.nr_conns = 1
        self.peer, ours = socket.socketpair()
        self.closed = 0
        self.conn = SimpleNamespace(sock=ours, close=self._close)

    def finish(self, result: bool = False) -> None:
        """Have the main thread told that the request is done with."""
        future: Future[bool] = Future()
        future.set_result(result)
        self.worker.finish_request(self.conn, future)

    def dispatch(self) -> None:
        """Have the main thread do what is to be done now, without waiting for it to come."""
        for key, _ in self.worker.poller.select(0):
            key.data(key.fileobj)
        self.worker.murder_pending()

    def is_over(self) -> bool:
        """Tell whether the connection is closed, once, and nothing of it is left."""
        nothing_left = not self.worker.lingering_conns and not self.worker.poller.get_map()
        return (self.closed, self.worker.nr_conns) == (1, 0) and nothing_left

    def _close(self) -> None:
        self.closed += 1
        self.conn.sock.close()

    def end(self) -> None:
        self.worker.poller.close()
        self.peer.close()
        self.conn.sock.close()


@pytest.fixture
def ended(gateway: ModuleType) -> Iterator[Ended]:
    ended = Ended(gateway)
    yield ended
    ended.end()


def test_a_caller_that_is_answered_for_good_sees_the_end_at_once_and_its_connection_closes_with_it(
    ended: Ended,
) -> None:
    ended.finish()
    ended.peer.settimeout(TIMEOUT_S)
    assert ended.peer.recv(1) == b""
    ended.peer.sendall(b"what it was still sending")
    ended.dispatch()
    assert not ended.is_over()
    ended.peer.close()
    ended.dispatch()
    assert ended.is_over()


def test_a_caller_that_closes_nothing_is_waited_for_by_nobody_and_not_for_ever(
    ended: Ended, monkeypatch: pytest.MonkeyPatch
) -> None:
    began = time.monotonic()
    ended.finish()
    ended.dispatch()
    assert time.monotonic() - began < 1.0
    assert not ended.is_over()
    monkeypatch.setattr("time.monotonic", lambda: began + 10)
    ended.dispatch()
    assert ended.is_over()


def test_a_caller_that_sends_without_end_is_cut_off(ended: Ended) -> None:
    ended.finish()
    ended.peer.setblocking(False)
    for _ in range(1_000):
        with suppress(BlockingIOError):
            ended.peer.send(bytes(65_536))
        ended.dispatch()
        if ended.is_over():
            return
    pytest.fail("its bytes are read for ever")


def test_a_caller_that_has_gone_is_not_waited_for(ended: Ended) -> None:
    ended.conn.sock.close()  # As where gunicorn has closed it already.
    ended.finish()
    assert ended.is_over()


def test_an_idempotency_key_sent_twice_is_refused_because_wsgi_would_make_another_of_it(gateway: ModuleType) -> None:
    worker = gateway.GatewayWorker.__new__(gateway.GatewayWorker)
    request = SimpleNamespace(headers=[("HOST", "x"), ("IDEMPOTENCY-KEY", "a"), ("IDEMPOTENCY-KEY", "a")])
    with pytest.raises(ParseException) as caught:
        worker.handle_request(request, None)
    first, _, body = answer_to(gateway, caught.value)
    assert first == "HTTP/1.1 400 Bad Request"
    assert b'"idempotency_key":["The Idempotency-Key must be sent once, but came several times."]' in body


def test_behind_a_body_that_cannot_be_read_no_other_request_is_looked_for(gateway: ModuleType) -> None:
    def finish_body(**_: object) -> bool:
        raise ParseException

    worker = gateway.GatewayWorker.__new__(gateway.GatewayWorker)
    assert not worker._keepalive_after(SimpleNamespace(parser=SimpleNamespace(finish_body=finish_body)), True)
    whole = SimpleNamespace(parser=SimpleNamespace(finish_body=lambda **_: True))
    assert worker._keepalive_after(whole, True)
