"""Turns: which of the webhooks that wait is next, so that no organization takes all threads from others."""

import threading
from collections import Counter
from collections.abc import Sequence


class Turns:
    """The webhooks that are delivered to now, and those that wait, the longest waiting first.

    An organization begins another delivery only while it has fewer than half as many as there are free threads. So each
    organization with slow receivers takes a smaller share than the one before it, and some threads stay free for those
    that have none under way.
    """

    def __init__(self, threads: int) -> None:
        self._threads = threads
        self._lock = threading.Lock()
        self._under_way: dict[int, int] = {}
        self._waiting: dict[int, int] = {}

    def found(self, due: Sequence[tuple[int, int]]) -> list[int]:
        """Take note of the webhooks that are due, each with its organization; return those to begin with now."""
        with self._lock:
            now_due = dict(due)
            still = {webhook_id: self._waiting[webhook_id] for webhook_id in self._waiting if webhook_id in now_due}
            new = {webhook_id: whose for webhook_id, whose in due if webhook_id not in self._under_way}
            self._waiting = still | new
            return self._begin()

    def ended(self, webhook_id: int) -> list[int]:
        """End a delivery; return the webhooks to begin with in its place."""
        with self._lock:
            del self._under_way[webhook_id]
            return self._begin()

    def _begin(self) -> list[int]:
        begun: list[int] = []
        shares = Counter(self._under_way.values())
        for webhook_id, organization_id in list(self._waiting.items()):
            if shares[organization_id] < (self._threads - len(self._under_way)) / 2:
                self._under_way[webhook_id] = self._waiting.pop(webhook_id)
                shares[organization_id] += 1
                begun.append(webhook_id)
        return begun
