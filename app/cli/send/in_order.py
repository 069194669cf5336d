"""Calls that are made at the same time, while their answers come in order."""

from collections import deque
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import Future
from threading import Thread
from typing import TypeVar

T = TypeVar("T")
R = TypeVar("R")


def in_order(calls: Iterable[tuple[T, Callable[[], R]]], *, at_most: int) -> Iterator[tuple[T, Future[R]]]:
    """Yield what each call is for with its outcome, in order, while up to `at_most` are under way.

    Each has a thread that nothing waits for when the process ends: an answer may never come.
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
    except Exception as error:  # noqa: BLE001  # It is raised where the outcome is waited for.
        outcome.set_exception(error)
