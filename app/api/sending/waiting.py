"""Waiting for batches: a hint wakes the waiting requests, and so does a shared poll of the rows every 250 ms.

A waiting request holds a thread but no database connection. The hints and the poll have a thread each. Only the row
decides whether a batch is final: a lost hint costs a quarter of a second, and a wrong hint costs nothing.
"""

import threading
import time
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager

from redis.exceptions import RedisError
from sqlalchemy.exc import SQLAlchemyError

from app import logs
from app.batches.batch import Batch, final_among, find_final
from app.batches.transaction import TransactionRow
from app.messaging import hints
from app.postgres.database import single_statement

POLL_EVERY_S = 0.25
_RETRY_AFTER_S = 1.0
# Batches of up to this many recipients are read together; a larger batch is read by its own request.
_READ_TOGETHER_MAX = 100
# Requests that wait for a reversal read their rows themselves, like those of a large batch.
READ_ALONE = _READ_TOGETHER_MAX + 1
# A hint may arrive before its request waits. In that time even a busy process hears fewer hints than this.
_RECENT_HINTS_MAX = 2_000

_log = logs.logger()

Rows = tuple[Batch, list[TransactionRow]]


class Waiter:
    """One request that waits for a batch of `recipients`. `rows` are set if the batch is small."""

    __slots__ = ("is_final", "recipients", "rows")

    def __init__(self, recipients: int) -> None:
        self.recipients = recipients
        self.rows: Rows | None = None
        self.is_final = threading.Event()


class Waiting:
    """The waiting requests of one process, by batch. `poll` and `listen` each need a thread that repeats them."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._waiters: dict[int, list[Waiter]] = {}
        self._recent_hints: dict[int, None] = {}
        self._has_waiters = threading.Event()

    @contextmanager
    def waiter(self, batch_id: int, recipients: int) -> Iterator[Waiter]:
        """Register a waiter for the block. Hints that came earlier count too."""
        waiter = Waiter(recipients)
        with self._lock:
            self._waiters.setdefault(batch_id, []).append(waiter)
            had_hint = batch_id in self._recent_hints
        self._has_waiters.set()
        try:
            if had_hint:
                self._wake([batch_id])
            yield waiter
        finally:
            with self._lock:
                self._waiters[batch_id].remove(waiter)
                if not self._waiters[batch_id]:
                    del self._waiters[batch_id]

    def listen(self) -> None:
        """Wake the requests that wait for the batches of each hint, until Redis is away."""
        try:
            for batch_ids in hints.listen():
                if batch_ids:
                    self._on_hint(batch_ids)
        except RedisError as error:
            _log.warning("hints_out_of_reach", **logs.kind_of(error))
            time.sleep(_RETRY_AFTER_S)

    def _on_hint(self, batch_ids: Sequence[int]) -> None:
        with self._lock:
            self._recent_hints.update(dict.fromkeys(batch_ids))
            while len(self._recent_hints) > _RECENT_HINTS_MAX:
                del self._recent_hints[next(iter(self._recent_hints))]
        self._wake(batch_ids)

    def poll(self) -> None:
        """Block until a request waits. A poll interval later, look once which batches are final."""
        self._has_waiters.wait()
        time.sleep(POLL_EVERY_S)
        with self._lock:
            pending = list(self._waiters)
            if not pending:
                self._has_waiters.clear()
        self._wake(pending)

    def _wake(self, batch_ids: Iterable[int]) -> None:
        """Wake the waiters of the batches that are final. If the read fails, the next poll finds them."""
        with self._lock:
            awaited = {batch_id: list(self._waiters[batch_id]) for batch_id in batch_ids if batch_id in self._waiters}
        small = [batch_id for batch_id, waiters in awaited.items() if waiters[0].recipients <= _READ_TOGETHER_MAX]
        large = list(awaited.keys() - set(small))
        try:
            rows = _read(small) if small else {}
            final = _final_among(large) if large else []
        except SQLAlchemyError as error:
            _log.warning("final_batches_not_read", **logs.kind_of(error))
            return
        for batch_id in (*rows, *final):
            for waiter in awaited[batch_id]:
                waiter.rows = rows.get(batch_id)
                waiter.is_final.set()


def _read(batch_ids: Sequence[int]) -> dict[int, Rows]:
    with single_statement() as connection:
        return find_final(connection, batch_ids)


def _final_among(batch_ids: Sequence[int]) -> list[int]:
    with single_statement() as connection:
        return final_among(connection, batch_ids)


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
