"""The work of a password: tens of milliseconds and 19 MiB each, so one at a time in a process, and few that wait."""

from collections.abc import Iterator
from contextlib import contextmanager
from threading import BoundedSemaphore, Lock

from app.errors import TooManySignIns

_WAITING_MAX = 8

_places = BoundedSemaphore(_WAITING_MAX)
_one_at_a_time = Lock()


@contextmanager
def password_work() -> Iterator[None]:
    """Wait for the turn to hash a password.

    Raises:
        TooManySignIns: too many wait already; a flood of sign-ins must not take the threads of the callers.
    """
    if not _places.acquire(blocking=False):
        raise TooManySignIns
    try:
        with _one_at_a_time:
            yield
    finally:
        _places.release()
