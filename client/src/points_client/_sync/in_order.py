"""Calls that run at the same time, whose results come in order. Threads and tasks share no code, so this is the only
file that `_async` has its own version of.
"""

from collections import deque
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import Future
from threading import Thread
from typing import TypeVar

R = TypeVar("R")


def in_order(calls: Iterable[Callable[[], R]], *, at_most: int) -> Iterator[R]:
    """Yield each call's result, in order, while up to `at_most` calls run.

    The threads are daemons: an answer that never comes must not keep the process alive.
    """
    running: deque[Future[R]] = deque()
    for call in calls:
        outcome: Future[R] = Future()
        running.append(outcome)
        Thread(target=_make, args=(call, outcome), daemon=True).start()
        if len(running) == at_most:
            yield running.popleft().result()
    while running:
        yield running.popleft().result()


def _make(call: Callable[[], R], outcome: Future[R]) -> None:
    try:
        outcome.set_result(call())
    except BaseException as error:  # noqa: BLE001  # Raised by `Future.result`.
        outcome.set_exception(error)
