"""Calls that run at the same time, whose results come in order, and calls that end in time. Threads and tasks share no
code, so this is the only file that `_async` has its own version of.

The threads are daemons: an answer that never comes must not keep the process alive. They wait for the next call and do
not end: with glibc a thread that has looked up a name holds the resolver's lock while it ends, and a child that is
forked meanwhile never looks up a name.
"""

import os
from collections import deque
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import Future
from contextvars import copy_context
from functools import partial
from queue import SimpleQueue
from threading import Thread
from typing import TypeVar

import httpx

R = TypeVar("R")


def each(items: Iterable[R]) -> Iterator[R]:
    """Yield the items."""
    return iter(items)


def within(seconds: float | None, call: Callable[[], R]) -> R:
    """Return what a call returns, if it ends in time: httpx only bounds the time between two bytes.

    Raises:
        httpx.ReadTimeout: it does not.
    """
    if seconds is None:
        return call()
    try:
        outcome = _started(call)
    except RuntimeError:  # No thread can be started: the interpreter ends, or has none.
        return call()
    try:
        return outcome.result(seconds)
    except TimeoutError:
        raise httpx.ReadTimeout(f"no whole answer within {seconds:.0f} s") from None


def in_order(calls: Iterator[Callable[[], R]], *, at_most: int) -> Iterator[R]:
    """Yield each call's result, in order, while up to `at_most` calls run.

    If `calls` itself raises, the results of the calls before it come first.
    """
    running: deque[Future[R]] = deque()
    fault: Exception | None = None
    while fault is None:
        try:
            running.append(_started(next(calls)))
        except StopIteration:
            break
        except Exception as error:  # noqa: BLE001  # It is raised below.
            fault = error
        if len(running) == at_most:
            yield running.popleft().result()
    while running:
        yield running.popleft().result()
    if fault is not None:
        raise fault


class _Worker(Thread):
    """Makes one call after the other."""

    def __init__(self) -> None:
        super().__init__(daemon=True)
        self.works: SimpleQueue[Callable[[], None]] = SimpleQueue()

    def run(self) -> None:
        while True:
            self.works.get()()
            _idle.append(self)


_idle: list[_Worker] = []
if hasattr(os, "register_at_fork"):  # Windows has no fork. A child has no thread of its parent.
    os.register_at_fork(after_in_child=_idle.clear)


def _started(call: Callable[[], R]) -> Future[R]:
    outcome: Future[R] = Future()
    try:
        worker = _idle.pop()
    except IndexError:
        worker = _Worker()
        worker.start()
    worker.works.put(partial(copy_context().run, _make, call, outcome))
    return outcome


def _make(call: Callable[[], R], outcome: Future[R]) -> None:
    try:
        outcome.set_result(call())
    except BaseException as error:  # noqa: BLE001  # Raised by `Future.result`.
        outcome.set_exception(error)
