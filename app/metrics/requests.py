"""The record of a request, and what a web process counts for each, in a few microseconds."""

import threading
import time
from collections.abc import Collection
from contextvars import ContextVar
from dataclasses import dataclass
from functools import cache

from prometheus_client import Counter, Gauge, Histogram
from prometheus_client.multiprocess import mark_process_dead

from app.postgres.connections import connections_in_use
from app.settings import settings


@dataclass(kw_only=True, slots=True)
class Record:
    """One request. The views fill in organization or platform key, batch and wait; times are from `perf_counter`.

    `wait` says why a send is answered 202: `scheduled`, `not_wished`, `ran_out`, `no_place` (too many wait already), or
    `not_read` (PostgreSQL went away after the batch was accepted).

    `trace_id` is the request's id for logs and tasks. These must hold no e-mail address, so an id with an @ is replaced
    by the beginning of its SHA-256. `key_hash` is that of a well-formed key. `code` is that of the answer, a word for
    programs, and `at_fault` are the names under which a refusal stands; some may be the caller's. `calls_counted` are
    the calls of its key, this call too, in the rate limit's window.
    """

    request_id: str
    trace_id: str
    started_at: float
    key_hash: bytes | None = None
    code: str | None = None
    at_fault: Collection[str] = ()
    organization_id: int | None = None
    platform_key_id: int | None = None
    batch_id: int | None = None
    waiting_since: float | None = None
    calls_counted: int = 0
    wait: str | None = None

    @property
    def has_good_key(self) -> bool:
        return self.organization_id is not None or self.platform_key_id is not None


_current: ContextVar[Record] = ContextVar("record")


def current_record() -> Record:
    """Return the record of the current request."""
    return _current.get()


def set_record(record: Record) -> None:
    """Make a record that of the current request."""
    _current.set(record)


def note_code(code: str | None, at_fault: Collection[str] = ()) -> None:
    """Note the code of the answer, and the names under which it refuses, if a request is answered."""
    record = _current.get(None)
    if record is not None:
        record.code, record.at_fault = code, at_fault


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
    """Count an answer. `route` is the template of a route and never a path."""
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
