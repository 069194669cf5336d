"""Waiting for batches, as a process does it: with a thread that listens and a thread that looks."""

import queue
import threading
from collections.abc import Callable, Iterator

import pytest

from app.api import waiting as module
from app.api.waiting import Waiting
from tests.unit.deadline import TIMEOUT_S
from tests.unit.pending import Rows


class Process:
    """One process that waits: its rows, the hints it hears, and an end to its threads."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        self.rows = Rows()
        self.hints: queue.SimpleQueue[list[int]] = queue.SimpleQueue()
        self.waiting = Waiting()
        self._is_over = threading.Event()
        self._before = threading.enumerate()
        self.rows.put_behind_waiting(monkeypatch)
        monkeypatch.setattr("app.hints.listen", self._listen)
        monkeypatch.setattr(module, "_for_ever", self._until_over)

    def _listen(self) -> Iterator[list[int]]:
        while not self._is_over.is_set():
            yield self.hints.get(timeout=TIMEOUT_S)

    def _until_over(self, work: Callable[[], None]) -> None:
        while not self._is_over.is_set():
            work()

    def end(self) -> None:
        self._is_over.set()
        self.hints.put([])
        self.waiting._somebody_waits.set()
        for thread in self.threads():
            thread.join(TIMEOUT_S)
        assert self.threads() == []

    def threads(self) -> list[threading.Thread]:
        """Return the threads that this process has started."""
        return [thread for thread in threading.enumerate() if thread not in self._before]


@pytest.fixture
def process(monkeypatch: pytest.MonkeyPatch) -> Iterator[Process]:
    one = Process(monkeypatch)
    yield one
    one.end()


def test_the_two_threads_start_with_the_first_who_waits_and_only_once(process: Process) -> None:
    assert process.threads() == []  # A thread started before a fork would be missing after it.
    with process.waiting.expect(1):
        first = process.threads()
        assert len(first) == 2
        assert all(thread.daemon for thread in first)
    with process.waiting.expect(1), process.waiting.expect(2):
        assert process.threads() == first


def test_a_hint_wakes_who_waits_before_any_look_does(process: Process) -> None:
    with process.waiting.expect(1) as final:
        process.hints.put([1])
        assert final.wait(TIMEOUT_S)
    assert process.rows.final == set()  # No look can have done it.


def test_a_lost_hint_costs_only_the_time_to_the_next_look(process: Process) -> None:
    with process.waiting.expect(1) as final:
        process.rows.final = {1}
        assert final.wait(TIMEOUT_S)


def test_many_who_come_and_go_at_once_are_each_woken_and_leave_nothing_behind(process: Process) -> None:
    process.rows.final = set(range(20))
    woken: list[int] = []

    def come_and_go(first: int) -> None:
        for batch_id in range(first, first + 10):
            with process.waiting.expect(batch_id % 20) as final:
                if final.wait(TIMEOUT_S):
                    woken.append(batch_id)

    waiters = [threading.Thread(target=come_and_go, args=(number,)) for number in range(30)]
    for waiter in waiters:
        waiter.start()
    for waiter in waiters:
        waiter.join(TIMEOUT_S)
    assert len(woken) == 300
    assert process.waiting._waiters == {}
