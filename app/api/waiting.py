"""Waiting for batches: every request that waits is woken by a hint, or by one shared look at the rows.

A waiting request holds a thread and no database connection. One thread listens for hints, another
looks at all pending rows in one query about every 250 ms, only while something waits. The row is the
truth: a hint that is lost costs a quarter of a second, and a hint that lies costs nothing.
"""

import threading
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager

from redis.exceptions import RedisError
from sqlalchemy.exc import SQLAlchemyError

from app import batches, hints, logs
from app.database import transaction

POLL_EVERY_S = 0.25
_LISTEN_AGAIN_AFTER_S = 1.0

_log = logs.logger()


class Waiting:
    """The requests of one process that wait, by batch. Its two threads start with the first of them."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._waiters: dict[int, list[threading.Event]] = {}
        self._somebody_waits = threading.Event()
        self._started = False

    @contextmanager
    def expect(self, batch_id: int) -> Iterator[threading.Event]:
        """Register a waiter; its event is set once the batch is final, or may be."""
        final = threading.Event()
        with self._lock:
            self._waiters.setdefault(batch_id, []).append(final)
            self._start()
        self._somebody_waits.set()
        try:
            yield final
        finally:
            with self._lock:
                self._waiters[batch_id].remove(final)
                if not self._waiters[batch_id]:
                    del self._waiters[batch_id]

    def wake(self, batch_ids: Sequence[int]) -> None:
        """Set the events of everyone who waits for one of these batches."""
        with self._lock:
            for batch_id in batch_ids:
                for final in self._waiters.get(batch_id, ()):
                    final.set()

    def _start(self) -> None:
        """Start the threads. At first use and not at import: a thread does not survive a fork."""
        if not self._started:
            self._started = True
            for work in (self._listen, self._poll):
                threading.Thread(target=_for_ever, args=(work,), name=f"waiting{work.__name__}", daemon=True).start()

    def _listen(self) -> None:
        try:
            for batch_ids in hints.listen():
                self.wake(batch_ids)
        except RedisError as error:
            _log.warning("hints_out_of_reach", **logs.kind_of(error))
            time.sleep(_LISTEN_AGAIN_AFTER_S)

    def _poll(self) -> None:
        self._somebody_waits.wait()
        time.sleep(POLL_EVERY_S)
        with self._lock:
            pending = list(self._waiters)
            if not pending:
                self._somebody_waits.clear()
                return
        try:
            with transaction() as connection:
                final = batches.final_among(connection, pending)
        except SQLAlchemyError as error:
            _log.warning("pending_batches_not_read", **logs.kind_of(error))
            return
        self.wake(final)


def _for_ever(work: Callable[[], None]) -> None:
    """Repeat one piece of a thread's work. An error nobody thought of must not end it unseen."""
    while True:
        try:
            work()
        except Exception as error:  # noqa: BLE001
            _log.error(
                "thread_failed", thread=work.__name__, **logs.kind_of(error), places=logs.places_of(error.__traceback__)
            )
            time.sleep(_LISTEN_AGAIN_AFTER_S)


waiting = Waiting()
