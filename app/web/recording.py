"""Recording requests: each gets an id, counts in the metrics, and leaves a line in the log."""

import os
import re
from hashlib import sha256
from time import perf_counter

from flask import Flask, Response, request
from structlog.contextvars import bind_contextvars, clear_contextvars

from app import logs
from app.metrics.record import Record, current_record, set_record
from app.metrics.requests import NO_ROUTE, count_request, count_wait
from app.settings import settings
from app.values.keys import start_in

# Never an API key, even if a caller sends one: request ids are logged and sent to workers.
_USABLE_REQUEST_ID = re.compile(r"(?!.*pts_(?:live|dev|platform)_)[A-Za-z0-9._:/+=@-]{1,128}\Z")

# Methods and paths come from callers: they are logged only where they can hold no address and no key.
_METHOD = re.compile(r"[A-Z]{1,10}")
_CLEAR_PART_OF_A_PATH = re.compile(r"(?!pts_)[A-Za-z0-9._~-]{1,40}")
_PATH_LENGTH_MAX = 100

# Monitoring calls these every few seconds: they are counted, but logged only when they fail.
_PROBES = {"/healthz", "/readyz", "/metrics"}

_log = logs.logger()


def record_requests(app: Flask) -> None:
    """Keep a record of every request of the application."""
    app.before_request(_begin)
    app.after_request(_end_with_line if settings().access_log else _end)


def request_id_of(given: str | None) -> str:
    """Return the id of a request: the given `X-Request-Id` if it is acceptable, else a new one."""
    return given if given and _USABLE_REQUEST_ID.match(given) else os.urandom(16).hex()


def trace_id_of(request_id: str) -> str:
    """Return a request's id for logs and tasks."""
    return sha256(request_id.encode()).hexdigest()[:32] if "@" in request_id else request_id


def _begin() -> None:
    """Start the record of a request."""
    request_id = request_id_of(request.environ.get("HTTP_X_REQUEST_ID"))
    trace_id = trace_id_of(request_id)
    set_record(Record(request_id=request_id, trace_id=trace_id, started_at=perf_counter()))
    # Every log line of this thread carries the id until its next request.
    clear_contextvars()
    bind_contextvars(request_id=trace_id)


def _end(response: Response) -> Response:
    _count(response)
    return response


def _end_with_line(response: Response) -> Response:
    record, method, route, seconds = _count(response)
    if route not in _PROBES or response.status_code >= 400:
        fields = {"method": method, "route": route, "status": response.status_code, "seconds": round(seconds, 6)}
        fields |= {"organization_id": record.organization_id, "batch_id": record.batch_id, "wait": record.wait}
        _log.info("request", **fields | _asked(response.status_code))
    return response


def _asked(status: int) -> dict[str, str]:
    """Return what helps an operator to find a refused caller: the unknown path, or the beginning of the key."""
    if status in (404, 405):
        return {
            "method": request.method if _METHOD.fullmatch(request.method) else NO_ROUTE[0],
            "path": "/".join(
                part if not part or _CLEAR_PART_OF_A_PATH.fullmatch(part) else "…" for part in request.path.split("/")
            )[:_PATH_LENGTH_MAX],
        }
    if status in (401, 429):
        key = request.environ.get("HTTP_AUTHORIZATION")
        return {"key_start": "none" if key is None else start_in(key) or "other"}
    return {}


def _count(response: Response) -> tuple[Record, str, str, float]:
    record = current_record()
    response.headers["X-Request-Id"] = record.request_id
    now = perf_counter()
    seconds = now - record.started_at
    rule = request.url_rule
    # Without a route, the method may be invented as well.
    method, route = NO_ROUTE if rule is None else (request.method, rule.rule)
    count_request(method, route, response.status_code, seconds)
    if record.waiting_since is not None:
        count_wait(response.status_code, now - record.waiting_since)
    return record, method, route, seconds
