"""Calls that run at the same time, whose results come in order, and calls that end in time. Threads and tasks share no
code, so this is the only file that `_async` has its own version of.

The threads are daemons: an answer that never comes must not keep the process alive.
"""

from collections import deque
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import Future
from contextvars import copy_context
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


def _started(call: Callable[[], R]) -> Future[R]:
    outcome: Future[R] = Future()
    Thread(target=copy_context().run, args=(_make, call, outcome), daemon=True).start()
    return outcome


def _make(call: Callable[[], R], outcome: Future[R]) -> None:
    try:
        outcome.set_result(call())
    except BaseException as error:  # noqa: BLE001  # Raised by `Future.result`.
        outcome.set_exception(error)
