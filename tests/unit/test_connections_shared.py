"""Web processes that take connections from one address: each its share, and none waits for one that does not come."""

import selectors
import socket
import time
from collections import deque
from collections.abc import Iterator
from contextlib import ExitStack

import pytest

from app.api.connection_share import ConnectionShare, HeldConnections
from app.api.gateway_connection import ConnectionWorker
from tests.deadline import TIMEOUT_S


class Process:
    """The main thread of a web process, turned by hand; it has no other."""

    def __init__(self, listener: socket.socket, share: ConnectionShare) -> None:
        worker = ConnectionWorker.__new__(ConnectionWorker)
        worker.pending_conns, worker.keepalived_conns, worker.lingering_conns = deque(), deque(), deque()
        worker.poller = selectors.DefaultSelector()
        worker.sockets, worker.cfg = [listener], None
        worker.nr_conns, worker.worker_connections = 0, 1_000
        worker._accepting, worker._leaves_until = False, None
        worker.share = share
        self.worker = worker

    @property
    def connections(self) -> int:
        return int(self.worker.nr_conns)

    def turn(self, *, within_s: float = 0.0) -> None:
        """Do what gunicorn does in one turn: wait for something to happen, so long at the most, and do it."""
        can_accept = self.worker.nr_conns < self.worker.worker_connections
        if can_accept != self.worker._accepting:
            self.worker.set_accept_enabled(can_accept)
        self.worker.wait_for_and_dispatch_events(within_s)

    def end(self) -> None:
        self.worker.poller.close()
        for conn in self.worker.pending_conns:
            conn.sock.close()


class Address:
    """An address that callers connect to, and two processes that take their connections."""

    def __init__(self, opened: ExitStack) -> None:
        self._opened = opened
        self.listener = opened.enter_context(socket.create_server(("127.0.0.1", 0), backlog=128))
        self.listener.setblocking(False)
        held = HeldConnections()
        self.one, self.other = (Process(self.listener, ConnectionShare(held, place)) for place in range(2))
        for process in (self.one, self.other):
            opened.callback(process.end)
            process.turn()

    def call(self, callers: int) -> None:
        for _ in range(callers):
            self._opened.enter_context(socket.create_connection(self.listener.getsockname()))

    def until_taken(self, connections: int, *turning: Process, within_s: float = 0.0) -> None:
        """Let processes have their turns, one after the other, until all of these connections are taken."""
        deadline = time.monotonic() + TIMEOUT_S
        while self.one.connections + self.other.connections < connections:
            assert time.monotonic() < deadline, "somebody waits for ever"
            for process in turning:
                process.turn(within_s=within_s)


@pytest.fixture
def address() -> Iterator[Address]:
    with ExitStack() as opened:
        yield Address(opened)


def test_each_takes_its_share_though_one_is_three_times_as_quick(address: Address) -> None:
    quick, slow = address.one, address.other
    address.call(40)
    address.until_taken(40, quick, quick, quick, slow)
    assert (quick.connections, slow.connections) == (20, 20)


def test_what_a_process_that_does_not_come_leaves_waiting_is_taken_by_another_soon(address: Address) -> None:
    address.call(1)
    address.until_taken(1, address.one)
    address.call(1)
    began = time.monotonic()
    address.until_taken(2, address.one, within_s=1.0)
    waited_s = time.monotonic() - began
    assert 0.009 < waited_s < 1.0  # It had been left to the other ten times, a millisecond each.
    address.call(30)
    began = time.monotonic()
    address.until_taken(32, address.one, within_s=1.0)
    assert time.monotonic() - began < 1.0
    assert (address.one.connections, address.other.connections) == (32, 0)


def test_a_process_that_takes_no_more_is_not_waited_for(address: Address) -> None:
    address.call(4)
    address.until_taken(4, address.one, address.other)
    address.other.worker.worker_connections = 2
    address.other.turn()
    address.call(10)
    for connections in range(5, 15):
        address.one.turn(within_s=1.0)
        assert address.one.connections + address.other.connections == connections


def test_a_process_that_has_left_a_connection_to_another_and_then_ends_takes_none(address: Address) -> None:
    address.call(1)
    address.until_taken(1, address.one)
    address.call(1)
    address.one.turn()
    address.one.worker.set_accept_enabled(False)
    for _ in range(50):
        address.one.worker.wait_for_and_dispatch_events(0.001)
    assert (address.one.connections, address.other.connections) == (1, 0)
    address.until_taken(2, address.other)
    assert address.other.connections == 1


def test_a_process_that_leaves_connections_hears_its_callers_meanwhile(address: Address) -> None:
    caller, ours = socket.socketpair()
    heard: list[bytes] = []
    with caller, ours:
        address.one.worker.poller.register(ours, selectors.EVENT_READ, lambda sock: heard.append(sock.recv(1)))
        address.call(1)
        address.until_taken(1, address.one)
        address.call(1)
        address.one.turn(within_s=1.0)
        caller.sendall(b"x")
        address.one.turn(within_s=1.0)
        assert heard == [b"x"]
