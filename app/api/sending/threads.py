"""The background threads of one web process."""

import threading
import time
from collections.abc import Callable

from app import logs

_RETRY_AFTER_S = 1.0

_log = logs.logger()


class Threads:
    """One thread for each kind of work, which it repeats without end."""

    def __init__(self, *works: Callable[[], None]) -> None:
        self._lock = threading.Lock()
        self._not_started = list(works)

    def start(self) -> None:
        """Start the threads that do not run yet. Call it after the fork: threads do not survive one."""
        with self._lock:
            while self._not_started:
                work = self._not_started[-1]
                thread = threading.Thread(target=_repeat, args=(work,), name=f"sending.{work.__name__}", daemon=True)
                try:
                    thread.start()
                except RuntimeError as error:  # No thread left in the system: the next send tries again.
                    _log_failed(work, error)
                    return
                self._not_started.pop()


def _repeat(work: Callable[[], None]) -> None:
    """Repeat the work of a thread. Errors are logged and do not end it."""
    while True:
        try:
            work()
        except Exception as error:  # noqa: BLE001
            _log_failed(work, error)
            time.sleep(_RETRY_AFTER_S)


def _log_failed(work: Callable[[], None], error: Exception) -> None:
    _log.error("thread_failed", thread=work.__name__, **logs.kind_of(error), places=logs.places_of(error.__traceback__))
