"""From which place on a process looks at an organization's queue.

While somebody holds a snapshot open, every batch that was queued since has left an entry in the index of the queue, and
a look from its beginning walks past them all. So a process that has issued many batches of an organization looks from
the lowest of the last ones on, and from the beginning every two seconds. What comes back at a lower place meanwhile, a
batch that was scheduled or put aside, waits for that look, or for a sweep, which knows no floor.
"""

import time
from collections import deque
from collections.abc import Iterable

# Far more than are accepted at one time: one with a lower id that is committed later is still found.
_BATCHES = 1_000
_WHOLE_EVERY_S = 2.0
# Of this many organizations. Where more are busy, each has issued little, and leaves few entries.
_ORGANIZATIONS_MAX = 100
LOWEST = 1


class Floors:
    """The floors of one process. They are a saving: an empty one looks at all queues from the beginning."""

    def __init__(self) -> None:
        self._issued: dict[int, deque[int]] = {}
        self._whole_at: dict[int, float] = {}

    def whole_or_floor(self, organization_id: int) -> int:
        """Return from which place on to look first: the beginning when the last such look is long ago."""
        now = time.monotonic()
        if now - self._whole_at.get(organization_id, -_WHOLE_EVERY_S) < _WHOLE_EVERY_S:
            return self.floor(organization_id)
        self._whole_at[organization_id] = now
        return LOWEST

    def floor(self, organization_id: int) -> int:
        """Return from which place on to look for more."""
        issued = self._issued.get(organization_id, ())
        return min(issued) if len(issued) == _BATCHES else LOWEST

    def note(self, organization_id: int, batch_ids: Iterable[int]) -> None:
        """Note what was issued. The place of a batch is its id, or higher."""
        if organization_id not in self._issued and len(self._issued) == _ORGANIZATIONS_MAX:
            self._issued.clear()
            self._whole_at.clear()
        self._issued.setdefault(organization_id, deque(maxlen=_BATCHES)).extend(batch_ids)
