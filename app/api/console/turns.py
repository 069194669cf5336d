"""Turns: checking a long list takes seconds of this process, so one at a time, and few that wait."""

from collections.abc import Iterator
from contextlib import contextmanager
from threading import BoundedSemaphore, Lock

from app.errors import OutOfReach

_WAITING_MAX = 4

_places = BoundedSemaphore(_WAITING_MAX)
_one_at_a_time = Lock()


@contextmanager
def turn_to_check() -> Iterator[None]:
    """Wait for the turn to check a list.

    Raises:
        OutOfReach: too many wait already; lists must not take the threads of the callers.
    """
    if not _places.acquire(blocking=False):
        raise OutOfReach
    try:
        with _one_at_a_time:
            yield
    finally:
        _places.release()
