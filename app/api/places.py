"""Places: how many sends of one process may wait for their batch at once.

Each of them holds a thread. Were there no bound, an organization whose batches are held up (its row is locked, no
worker runs) would have all threads in the end, and nobody else an answer, not even `/healthz`.
"""

import threading
from collections import Counter

# So many threads a process has at the most; one is started only when a request comes and no other is free.
THREADS = 384
# The rest is for what does not wait.
PLACES = 320
# And of one organization, so that the others find places too.
PLACES_OF_AN_ORGANIZATION = 256


class Places:
    """The places of one process."""

    def __init__(self, *, at_most: int = PLACES, of_an_organization: int = PLACES_OF_AN_ORGANIZATION) -> None:
        self._at_most = at_most
        self._of_an_organization = of_an_organization
        self._lock = threading.Lock()
        self._taken: Counter[int] = Counter()

    def take(self, organization_id: int) -> bool:
        """Take a place for a send of an organization; tell whether there was one."""
        with self._lock:
            taken = self._taken
            if taken.total() >= self._at_most or taken[organization_id] >= self._of_an_organization:
                return False
            taken[organization_id] += 1
            return True

    def give_back(self, organization_id: int) -> None:
        """Give back a place that was taken."""
        with self._lock:
            self._taken[organization_id] -= 1
            if not self._taken[organization_id]:
                del self._taken[organization_id]
