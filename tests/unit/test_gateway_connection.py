"""A caller's connection: it gets no thread before it has said something, and none waits for its end."""

import selectors
import socket
import threading
import time
from collections import deque
from collections.abc import Iterator
from concurrent.futures import Future
from contextlib import suppress
from types import SimpleNamespace

import pytest
from gunicorn.http.errors import ParseException

from app.api import gateway_connection
from app.api.gateway_connection import READ_DEADLINE_S, Connection, ConnectionWorker
from tests.deadline import TIMEOUT_S, until


class Answered:
    """A connection with much to be sent to its caller, who reads 64 KiB whenever it is told to."""

    def __init__(self) -> None:
        self.peer, ours = socket.socketpair()
        for end in (self.peer, ours):
            end.setsockopt(socket.SOL_SOCKET, socket.SO_SNDBUF, 4_096)
        self.ours = Connection(fileno=ours.detach())
        self.ours.setblocking(True)
        self.read = 0
        self.is_over = threading.Event()

    def read_every(self, seconds: float) -> None:
        while not self.is_over.wait(seconds):
            self.read += len(self.peer.recv(65_536))


@pytest.fixture
def answered(monkeypatch: pytest.MonkeyPatch) -> Iterator[Answered]:
    monkeypatch.setattr(gateway_connection, "_SEND_TIMEOUT_S", 0.5)
    one = Answered()
    with one.peer, one.ours:
        yield one


def test_a_caller_on_a_slow_line_gets_all_of_a_large_answer(answered: Answered) -> None:
    """Three times as long as a caller that reads nothing is waited for."""
    reader = threading.Thread(target=answered.read_every, args=(0.1,))
    reader.start()
    try:
        answered.ours.sendall(bytes(1_000_000))
        answered.ours.shutdown(socket.SHUT_WR)
        until(lambda: answered.read == 1_000_000, "all of it is read")
    finally:
        answered.is_over.set()
        reader.join(TIMEOUT_S)


def test_a_caller_that_reads_nothing_is_given_up(answered: Answered) -> None:
    began = time.monotonic()
    with pytest.raises(TimeoutError):
        answered.ours.sendall(bytes(1_000_000))
    assert time.monotonic() - began < 5


def test_a_caller_that_reads_too_slowly_is_given_up_at_last(
    answered: Answered, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(gateway_connection, "_SLOWEST_BYTES_PER_S", 1_000_000_000)
    reader = threading.Thread(target=answered.read_every, args=(0.1,))
    reader.start()
    try:
        with pytest.raises(TimeoutError):
            answered.ours.sendall(bytes(10_000_000))
    finally:
        answered.is_over.set()
        reader.join(TIMEOUT_S)


def test_a_connection_that_says_nothing_gets_no_thread_and_ends_with_the_process() -> None:
    worker = ConnectionWorker.__new__(ConnectionWorker)
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

    def __init__(self) -> None:
        self.worker = ConnectionWorker.__new__(ConnectionWorker)
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
def ended() -> Iterator[Ended]:
    ended = Ended()
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


def test_a_caller_has_so_long_for_its_request_and_what_it_has_not_sent_by_then_is_not_waited_for(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    moments = iter((0.0, 0.0, READ_DEADLINE_S - 0.05, READ_DEADLINE_S))
    monkeypatch.setattr("app.api.gateway_connection.time", SimpleNamespace(monotonic=lambda: next(moments)))
    peer, ours = socket.socketpair()
    with peer, Connection(fileno=ours.detach()) as connection:
        connection.setblocking(True)
        peer.sendall(b"GET / HT")
        assert connection.recv(100) == b"GET / HT"
        began = time.monotonic()
        assert connection.recv(100) == b""
        assert time.monotonic() - began < READ_DEADLINE_S / 2
        peer.sendall(b"TP/1.1")
        assert connection.recv(100) == b""


def test_behind_a_body_that_cannot_be_read_or_is_not_read_whole_no_other_request_is_looked_for() -> None:
    def finish_body(**_: object) -> bool:
        raise ParseException

    worker = ConnectionWorker.__new__(ConnectionWorker)
    assert not worker._keepalive_after(SimpleNamespace(parser=SimpleNamespace(finish_body=finish_body)), True)
    for is_read in (True, False):
        conn = SimpleNamespace(parser=SimpleNamespace(finish_body=lambda is_read=is_read, **_: is_read))
        assert worker._keepalive_after(conn, True) is is_read
