"""Waiting for batches, as a process does it: with a thread that listens and a thread that looks."""

import queue
import threading
from collections.abc import Callable, Iterator, MutableMapping
from typing import Any

import pytest

from app.api import waiting as module
from app.api.submitting import Submitting
from app.api.waiting import Waiter, Waiting
from app.hints import Hint
from tests.deadline import TIMEOUT_S
from tests.unit.pending import Pending


class Process:
    """One process that waits: its rows, the hints it hears, and an end to its threads."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        self.pending = Pending()
        self.hints: queue.SimpleQueue[Hint | None] = queue.SimpleQueue()
        self.waiting = Waiting(Submitting())
        self._is_over = threading.Event()
        self._before = threading.enumerate()
        self.pending.put_behind_waiting(monkeypatch)
        monkeypatch.setattr("app.hints.listen", self._listen)
        monkeypatch.setattr(module, "_for_ever", self._until_over)

    def come(self, batch_id: int) -> Waiter:
        waiter = Waiter(recipients=1)
        self.waiting.expect(batch_id, waiter)
        return waiter

    def _listen(self) -> Iterator[Hint | None]:
        while not self._is_over.is_set():
            yield self.hints.get(timeout=TIMEOUT_S)

    def _until_over(self, work: Callable[[], None]) -> None:
        while not self._is_over.is_set():
            work()

    def end(self) -> None:
        self._is_over.set()
        self.hints.put(None)
        self.waiting._something_to_do.set()
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
    waiter = process.come(1)
    first = process.threads()
    assert len(first) == 2
    assert all(thread.daemon for thread in first)
    process.waiting.leave(1, waiter)
    process.come(1)
    process.come(2)
    process.waiting.start()
    assert process.threads() == first


def test_a_thread_that_the_system_could_not_start_is_started_with_the_next_who_waits(
    process: Process, monkeypatch: pytest.MonkeyPatch, events: list[MutableMapping[str, Any]]
) -> None:
    def none_left(_thread: threading.Thread) -> None:
        raise RuntimeError("can't start new thread")

    with monkeypatch.context() as patch:
        patch.setattr(threading.Thread, "start", none_left)
        waiter = process.come(1)  # It is accepted, and waits in vain at worst.
    assert ([event["event"] for event in events], process.threads()) == (["thread_failed"], [])
    process.pending.final = {1}
    process.come(2)
    assert len(process.threads()) == 2
    assert waiter.sleep(TIMEOUT_S)


def test_a_hint_wakes_who_waits_before_any_look_does(process: Process, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "POLL_EVERY_S", 3_600)
    process.waiting._looked_at = float("inf")  # No look can do it.
    waiter = process.come(1)
    process.pending.final = {1}
    process.hints.put(Hint(organization_id=7, batch_ids=[1], has_left=True))
    assert waiter.sleep(TIMEOUT_S)
    assert waiter.rows == process.pending.rows_of(1)
    assert process.pending.asked == []


def test_a_lost_hint_costs_only_the_time_to_the_next_look(process: Process) -> None:
    waiter = process.come(1)
    process.pending.final = {1}
    assert waiter.sleep(TIMEOUT_S)
    assert waiter.is_final


def test_many_who_come_and_go_at_once_are_each_woken_and_leave_nothing_behind(process: Process) -> None:
    process.pending.final = set(range(20))
    woken: list[int] = []

    def come_and_go(first: int) -> None:
        for number in range(first, first + 10):
            batch_id = number % 20
            waiter = process.come(batch_id)
            if waiter.sleep(TIMEOUT_S) and waiter.rows == process.pending.rows_of(batch_id):
                woken.append(number)
            process.waiting.leave(batch_id, waiter)

    waiters = [threading.Thread(target=come_and_go, args=(number,)) for number in range(30)]
    for waiter in waiters:
        waiter.start()
    for waiter in waiters:
        waiter.join(TIMEOUT_S)
    assert len(woken) == 300
    assert process.waiting._waiters == {}
