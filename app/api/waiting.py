"""Waiting for batches: every request that waits is woken by a hint, or by one shared look at the rows.

A waiting request holds a thread and no database connection. One thread listens for hints and reads the
small batches among them in one go, for all who wait for them; another looks at all pending rows in one
query about every 250 ms, only while something waits. The row is the truth: a hint that is lost costs a
quarter of a second, and a hint that lies costs nothing.
"""

import threading
import time
from collections.abc import Callable, Iterable, Sequence
from contextlib import suppress

from redis.exceptions import RedisError
from sqlalchemy.exc import SQLAlchemyError

from app import batches, hints, logs
from app.api.submitting import Submitting
from app.batches import BatchRow, TransactionRow
from app.database import single_statement

POLL_EVERY_S = 0.25
_TICK_EVERY_S = 0.05
_LISTEN_AGAIN_AFTER_S = 1.0
# Batches up to this many recipients are read together; a larger one is read and rendered by its own request.
_READ_TOGETHER_MAX = 100
# The newest batches that hints told of; more than a busy process hears of between a commit and what follows it.
_REMEMBERED_MAX = 2_000

_log = logs.logger()

Rows = tuple[BatchRow, list[TransactionRow]]


class Waiter:
    """One request that waits. Whoever wakes it has set before what it then finds: its batch is final, or more.

    `rows` are read for it by the way when its batch is small (`recipients`).
    """

    __slots__ = ("_asleep", "is_final", "recipients", "rows")

    def __init__(self, recipients: int) -> None:
        self.recipients = recipients
        self.is_final = False
        self.rows: Rows | None = None
        self._asleep = threading.Lock()  # An Event would cost ten times as much, and every send makes one.
        self._asleep.acquire()

    def wake(self) -> None:
        """Let `sleep` return, at once or when it is next called. To wake it twice is to wake it once."""
        with suppress(RuntimeError):  # It is awake already.
            self._asleep.release()

    def sleep(self, timeout_s: float) -> bool:
        """Wait to be woken; tell whether that was in time."""
        return self._asleep.acquire(timeout=max(0.0, timeout_s))


class Waiting:
    """The requests of one process that wait, by batch. Its two threads start with the first send."""

    def __init__(self, submitting: Submitting) -> None:
        self._submitting = submitting
        self._lock = threading.Lock()
        self._waiters: dict[int, list[Waiter]] = {}
        self._heard: dict[int, None] = {}
        self._something_to_do = threading.Event()
        self._not_started: list[Callable[[], None]] = [self._look, self._listen]
        self._looked_at = 0.0

    def expect(self, batch_id: int, waiter: Waiter) -> bool:
        """Have a waiter woken once the batch is final; tell whether a hint of it was heard before: then `wake` it."""
        with self._lock:
            self._waiters.setdefault(batch_id, []).append(waiter)
            was_heard = batch_id in self._heard
        self.start()
        return was_heard

    def leave(self, batch_id: int, waiter: Waiter) -> None:
        """Forget a waiter, whether it was woken or not."""
        with self._lock:
            waiters = self._waiters.get(batch_id, [])
            if waiter in waiters:
                waiters.remove(waiter)
            if not waiters:
                self._waiters.pop(batch_id, None)

    def start(self) -> None:
        """See that the threads run. At first use and not at import: a thread does not survive a fork."""
        self._something_to_do.set()
        if not self._not_started:
            return
        with self._lock:
            while self._not_started:
                work = self._not_started[-1]
                thread = threading.Thread(target=_for_ever, args=(work,), name=f"waiting{work.__name__}", daemon=True)
                try:
                    thread.start()
                except RuntimeError as error:  # The system has none to give now. Whoever comes next tries again.
                    _log_failed(work, error)
                    return
                self._not_started.pop()

    def _listen(self) -> None:
        try:
            self._listen_once()
        except RedisError as error:
            _log.warning("hints_out_of_reach", **logs.kind_of(error))
            time.sleep(_LISTEN_AGAIN_AFTER_S)

    def _listen_once(self) -> None:
        try:
            for hint in hints.listen():
                self._submitting.hears_hints(True)
                if hint is not None:
                    self._submitting.hear(hint)  # First, so that the next drain runs while this one's rows are read.
                    self._remember(hint.batch_ids)
                    self.wake(hint.batch_ids)
        finally:
            self._submitting.hears_hints(False)

    def _remember(self, batch_ids: Iterable[int]) -> None:
        """Keep what was heard of for a while: a drain can be quicker than the process that has accepted its batch."""
        with self._lock:
            self._heard.update(dict.fromkeys(batch_ids))
            while len(self._heard) > _REMEMBERED_MAX:
                del self._heard[next(iter(self._heard))]

    def wake(self, batch_ids: Iterable[int]) -> None:
        """Wake everyone who waits for one of these batches and whose batch is final indeed."""
        with self._lock:
            awaited = {batch_id: list(self._waiters[batch_id]) for batch_id in batch_ids if batch_id in self._waiters}
        if not awaited:
            return
        small = [number for number, waiters in awaited.items() if waiters[0].recipients <= _READ_TOGETHER_MAX]
        large = list(awaited.keys() - set(small))
        try:
            rows = _read(small) if small else {}
            final = _final_among(large) if large else []
        except SQLAlchemyError as error:  # The next look will find them.
            _log.warning("final_batches_not_read", **logs.kind_of(error))
            return
        for batch_id in (*rows, *final):
            for waiter in awaited[batch_id]:
                waiter.rows, waiter.is_final = rows.get(batch_id), True
                waiter.wake()

    def _look(self) -> None:
        self._something_to_do.wait()
        time.sleep(_TICK_EVERY_S)
        self._submitting.tick()
        self._something_to_do.clear()  # Before looking whether there is: who comes after the look sets it again.
        with self._lock:
            pending = list(self._waiters)
        if pending or not self._submitting.is_idle:
            self._something_to_do.set()
        if not pending or time.monotonic() - self._looked_at < POLL_EVERY_S:
            return
        self._looked_at = time.monotonic()
        try:
            final = _final_among(pending)
        except SQLAlchemyError as error:
            _log.warning("pending_batches_not_read", **logs.kind_of(error))
            return
        self.wake(final)


def _read(batch_ids: Sequence[int]) -> dict[int, Rows]:
    with single_statement() as connection:
        return batches.find_final(connection, batch_ids)


def _final_among(batch_ids: Sequence[int]) -> list[int]:
    with single_statement() as connection:
        return batches.final_among(connection, batch_ids)


def _for_ever(work: Callable[[], None]) -> None:
    """Repeat one piece of a thread's work. An error nobody thought of must not end it unseen."""
    while True:
        try:
            work()
        except Exception as error:  # noqa: BLE001
            _log_failed(work, error)
            time.sleep(_LISTEN_AGAIN_AFTER_S)


def _log_failed(work: Callable[[], None], error: Exception) -> None:
    _log.error("thread_failed", thread=work.__name__, **logs.kind_of(error), places=logs.places_of(error.__traceback__))
