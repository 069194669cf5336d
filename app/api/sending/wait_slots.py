"""Wait slots: the limit of sends that wait for their batch at once in one process.

Each waiting send holds a thread. Without a limit, one organization whose batches are stuck (its row is locked, or no
worker runs) would hold every thread, and no other request would be answered, not even `/healthz`.
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
    """The slots of one process."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._taken: Counter[int] = Counter()

    @contextmanager
    def slot(self, organization_id: int) -> Iterator[bool]:
        """Hold a slot for the block; yield False if none is free."""
        with self._lock:
            is_free = (
                self._taken.total() < WAITING_SENDS_MAX
                and self._taken[organization_id] < WAITING_SENDS_OF_AN_ORGANIZATION_MAX
            )
            self._taken[organization_id] += is_free
        try:
            yield is_free
        finally:
            with self._lock:
                self._taken[organization_id] -= is_free
                if not self._taken[organization_id]:
                    del self._taken[organization_id]
