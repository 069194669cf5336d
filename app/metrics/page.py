"""The text of `GET /metrics`, in the format of Prometheus."""

import threading
import time
from collections.abc import Callable, Iterator

from prometheus_client import CONTENT_TYPE_PLAIN_0_0_4, CollectorRegistry, generate_latest
from prometheus_client.metrics_core import Metric
from prometheus_client.multiprocess import MultiProcessCollector
from redis.exceptions import RedisError
from sqlalchemy.exc import SQLAlchemyError

from app.messaging import process_redis
from app.metrics import DIRECTORY, state
from app.metrics.state import work

CONTENT_TYPE = CONTENT_TYPE_PLAIN_0_0_4

# Anybody may request the page, so each process reads the servers no more often than this.
CACHED_S = 1.0


class _ServerMetrics:
    """The figures from Redis and PostgreSQL. If a server is away, only its own figures are missing."""

    def collect(self) -> Iterator[Metric]:
        client = process_redis.redis()
        for read in (lambda: work(client), lambda: state.notes(client), state.broker, state.queue, state.standby):
            yield from _all_or_none(read)


def _all_or_none(read: Callable[[], Iterator[Metric]]) -> list[Metric]:
    try:
        return list(read())
    except (RedisError, SQLAlchemyError):
        return []  # An alert notices absent figures; zeros or old figures would mislead.


class Page:
    """The page, kept for `CACHED_S`. One thread renews it; meanwhile the others return the old text."""

    def __init__(self) -> None:
        self._renewal = threading.Lock()
        self._text: bytes | None = None
        self._made_at = 0.0

    def text(self) -> bytes:
        if not self._renewal.acquire(blocking=self._text is None):
            assert self._text is not None, "without a page the lock is waited for"
            return self._text
        try:
            if self._text is None or time.monotonic() - self._made_at > CACHED_S:
                self._text = _generate()
                self._made_at = time.monotonic()
            return self._text
        finally:
            self._renewal.release()


def _generate() -> bytes:
    registry = CollectorRegistry()
    MultiProcessCollector(registry, path=DIRECTORY)  # type: ignore[no-untyped-call]
    registry.register(_ServerMetrics())
    return generate_latest(registry)


page = Page()
