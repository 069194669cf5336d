"""Turns: a process does slow work one piece at a time, and only few requests may wait for their turn.

Otherwise many such requests could hold the threads of all callers.
"""

from collections.abc import Iterator
from contextlib import contextmanager
from threading import BoundedSemaphore, Lock

from app.errors import PointsError


class Busy(PointsError):
    """Too many requests wait for a piece of slow work in this process; nothing was begun."""

    status = 503
    field = "service"
    retry_after_s = 5


class Turns:
    """The turns of one kind of work in this process."""

    def __init__(self, waiting_max: int, refusal: str) -> None:
        self.waiting_max = waiting_max
        self._refusal = refusal
        self._places = BoundedSemaphore(waiting_max)
        self._one_at_a_time = Lock()

    @contextmanager
    def turn_of_many(self) -> Iterator[None]:
        """Wait for a turn of work that was begun and is done in many: it is refused no more, however many wait."""
        with self._one_at_a_time:
            yield

    @contextmanager
    def turn(self) -> Iterator[None]:
        """Wait for the turn, and hold it for the block.

        Raises:
            Busy: too many requests wait already.
        """
        if not self._places.acquire(blocking=False):
            raise Busy(f"{self._refusal} Try again in a few seconds.")
        try:
            with self._one_at_a_time:
                yield
        finally:
            self._places.release()


# Hashing a password takes tens of milliseconds and 19 MiB.
password_work = Turns(8, "Too many people are signing in, so your password was not looked at.")
# Checking a long list takes seconds.
list_checks = Turns(4, "Too many lists are being checked, so yours was not looked at.")
# A search that finds little reads millions of rows, for a second or two.
searches = Turns(8, "Too many searches are running, so yours was not begun.")
