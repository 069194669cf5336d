"""A caller's connection: a slow line is waited for, and one that is too slow is over."""

import socket
import threading
import time
from collections.abc import Iterator
from importlib import import_module
from types import ModuleType

import pytest

from tests.deadline import TIMEOUT_S, until


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
