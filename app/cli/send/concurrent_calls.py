"""Concurrent calls whose outcomes come in order."""

from collections import deque
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import Future
from threading import Thread
from typing import TypeVar

T = TypeVar("T")
R = TypeVar("R")


def in_order(calls: Iterable[tuple[T, Callable[[], R]]], *, at_most: int) -> Iterator[tuple[T, Future[R]]]:
    """Yield each call's item and outcome, in order, while up to `at_most` calls run at the same time.

    The threads are daemons: an answer that never comes must not keep the process alive.
    """
    running: deque[tuple[T, Future[R]]] = deque()
    for item, call in calls:
        outcome: Future[R] = Future()
        running.append((item, outcome))
        Thread(target=_make, args=(call, outcome), daemon=True).start()
        if len(running) == at_most:
            yield running.popleft()
    yield from running


def _make(call: Callable[[], R], outcome: Future[R]) -> None:
    try:
        outcome.set_result(call())
    except Exception as error:  # noqa: BLE001  # Raised by `Future.result`.
        outcome.set_exception(error)
