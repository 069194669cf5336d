"""Turns: which of the webhooks that wait is next, so that slow receivers leave threads to others."""

import threading
from collections import Counter
from collections.abc import Sequence

from app.webhooks.cursors import Due


class Turns:
    """The webhooks that are delivered to now, and those that wait, the longest waiting first.

    An organization begins another delivery only while it has fewer than half as many as there are free threads. So each
    organization with slow receivers takes a smaller share than that before it, and some threads stay free for those
    that have none under way. Whatever the number of organizations, receivers known to be slow leave a quarter of the
    threads to the others.
    """

    def __init__(self, threads: int) -> None:
        self._threads = threads
        self._slow_at_most = max(1, threads - max(1, threads // 4))
        self._lock = threading.Lock()
        self._under_way: dict[int, Due] = {}
        self._waiting: dict[int, Due] = {}

    def found(self, due: Sequence[Due]) -> list[int]:
        """Take note of the webhooks that are due; return those to begin with now."""
        with self._lock:
            now_due = {webhook.webhook_id: webhook for webhook in due if webhook.webhook_id not in self._under_way}
            still = {webhook_id: now_due[webhook_id] for webhook_id in self._waiting if webhook_id in now_due}
            self._waiting = still | now_due
            return self._begin()

    def ended(self, webhook_id: int) -> list[int]:
        """End a delivery; return the webhooks to begin with in its place."""
        with self._lock:
            del self._under_way[webhook_id]
            return self._begin()

    def _begin(self) -> list[int]:
        begun: list[int] = []
        shares = Counter(webhook.organization_id for webhook in self._under_way.values())
        slow = sum(webhook.is_slow for webhook in self._under_way.values())
        for webhook in list(self._waiting.values()):
            if webhook.is_slow and slow >= self._slow_at_most:
                continue
            if shares[webhook.organization_id] < (self._threads - len(self._under_way)) / 2:
                self._under_way[webhook.webhook_id] = self._waiting.pop(webhook.webhook_id)
                shares[webhook.organization_id] += 1
                slow += webhook.is_slow
                begun.append(webhook.webhook_id)
        return begun
