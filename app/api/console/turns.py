"""Turns: work that takes this process long is done one at a time, and few wait for it.

A flood of it must not take the threads of the callers.
"""

from collections.abc import Iterator
from contextlib import contextmanager
from threading import BoundedSemaphore, Lock

from app.errors import OutOfReach, PointsError, TooManySignIns


class Turns:
    """The turns of one kind of work in this process."""

    def __init__(self, waiting_max: int, refusal: type[PointsError]) -> None:
        self.waiting_max = waiting_max
        self._refusal = refusal
        self._places = BoundedSemaphore(waiting_max)
        self._one_at_a_time = Lock()

    @contextmanager
    def turn(self) -> Iterator[None]:
        """Wait for the turn.

        Raises:
            PointsError: the refusal of this work; too many wait already.
        """
        if not self._places.acquire(blocking=False):
            raise self._refusal
        try:
            with self._one_at_a_time:
                yield
        finally:
            self._places.release()


# Tens of milliseconds and 19 MiB each.
password_work = Turns(8, TooManySignIns)
# Checking a long list takes seconds.
list_checks = Turns(4, OutOfReach)
