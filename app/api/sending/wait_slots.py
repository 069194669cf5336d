"""Wait slots: how many requests of one kind may wait at once in one process.

Each waiting send holds a thread. Without a limit, one organization whose batches are stuck (its row is locked, or no
worker runs) could hold every thread. Then no other request would be answered, not even `/healthz`.
"""

import threading
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager

# Upper limit of threads; a thread is started only when a request arrives and none is idle.
THREADS = 384
WAITING_SENDS_MAX = 320
WAITING_SENDS_OF_AN_ORGANIZATION_MAX = 256


class WaitSlots:
    """The slots of one process for one kind of request, with a limit for all and one for each owner."""

    def __init__(self, *, at_most: int, of_one_at_most: int) -> None:
        self._at_most, self._of_one_at_most = at_most, of_one_at_most
        self._lock = threading.Lock()
        self._taken: Counter[int | str] = Counter()

    @contextmanager
    def slot(self, owner: int | str) -> Iterator[bool]:
        """Hold a slot of an owner for the block; yield False if none is free."""
        with self._lock:
            is_free = self._taken.total() < self._at_most and self._taken[owner] < self._of_one_at_most
            self._taken[owner] += is_free
        try:
            yield is_free
        finally:
            with self._lock:
                self._taken[owner] -= is_free
                if not self._taken[owner]:
                    del self._taken[owner]
