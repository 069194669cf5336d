"""Wait slots: how many sends of one process may wait for their batch at once.

Each holds a thread. Without a limit, an organization whose batches are held up (its row is locked, no worker
runs) would hold every thread, and no other request would be answered, not even `/healthz`.
"""

import threading
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager

# Threads of a process; one is started only when a request comes and none is idle.
THREADS = 384
# The other threads are for requests that do not wait.
WAITING_SENDS_MAX = 320
# One organization leaves slots to the others.
WAITING_SENDS_OF_AN_ORGANIZATION_MAX = 256


class WaitSlots:
    """The slots of one process."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._taken: Counter[int] = Counter()

    @contextmanager
    def slot(self, organization_id: int) -> Iterator[bool]:
        """Hold a slot for the time of the block; give False if none is free."""
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
