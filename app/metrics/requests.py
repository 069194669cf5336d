"""What a web process counts for each request, in a few microseconds."""

import threading
import time
from functools import cache

from prometheus_client import Counter, Gauge, Histogram
from prometheus_client.multiprocess import mark_process_dead

from app.postgres.connections import connections_in_use
from app.settings import settings

# Method and route for an unknown path, and for bytes that are not a request: callers must not add label values.
NO_ROUTE = ("other", "no route")

_REQUESTS = Counter("points_requests", "Requests answered.", ("method", "route", "status"))
_SECONDS = Histogram(
    "points_request_seconds",
    "Time from the first line of the service's code to the answer, with body and wait.",
    ("method", "route"),
    buckets=(0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10, 25, 60),
)
_WAIT_SECONDS = Histogram(
    "points_send_wait_seconds",
    "Time from an accepted batch to its answer, by the status of the answer.",
    ("status",),
    buckets=(0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10, 25, 60),
)
_CONNECTIONS = Gauge(
    "points_database_connections",
    "Connections of the web processes: in use (updated every second), and allowed.",
    ("which",),
    multiprocess_mode="livesum",
)
_NOT_KEPT = Counter(
    "points_requests_not_kept", "Calls that `GET /v1/requests` lacks: no room, or not written.", ("reason",)
)
_UPDATE_EVERY_S = 1.0


def count_request(method: str, route: str, status: int, seconds: float) -> None:
    """Count one answer. `route` is the template of a route and never a path."""
    counter, histogram = _metrics_of(method, route, status)
    counter.inc()
    histogram.observe(seconds)


def count_wait(status: int, seconds: float) -> None:
    _wait_of(status).observe(seconds)


def count_not_kept(reason: str, calls: int) -> None:
    """Count calls that were lost for the list of requests."""
    _NOT_KEPT.labels(reason).inc(calls)


# Cached, because the look-up by labels is the slow part of counting.
@cache
def _metrics_of(method: str, route: str, status: int) -> tuple[Counter, Histogram]:
    return _REQUESTS.labels(method, route, str(status)), _SECONDS.labels(method, route)


@cache
def _wait_of(status: int) -> Histogram:
    return _WAIT_SECONDS.labels(str(status))


def watch_connections() -> None:
    """Start a thread that keeps the figures of this process's connections up to date. Call it after the fork.

    Any process may show the figures of all, and it can read only what the others have written.
    """
    _CONNECTIONS.labels("allowed").set(settings().database_connections_max)
    threading.Thread(target=_watch_connections, name="connections", daemon=True).start()


def _watch_connections() -> None:
    in_use = _CONNECTIONS.labels("in_use")
    while True:
        in_use.set(connections_in_use())
        time.sleep(_UPDATE_EVERY_S)


def forget_connections_of(pid: int) -> None:
    """Drop the figures of a dead process's connections; call it in the master. The process's counts stay."""
    mark_process_dead(pid)  # type: ignore[no-untyped-call]
