"""Recording requests: each gets an id, counts in the metrics, and leaves a line in the log."""

import re
import time
from functools import cache
from time import perf_counter

from flask import Flask, Response, request
from structlog.contextvars import bind_contextvars, clear_contextvars

from app import logs
from app.api.auth import hash_of_given_key
from app.api.calls import known_names
from app.metrics.requests import NO_ROUTE, Record, count_not_kept, count_request, count_wait, current_record, set_record
from app.request_log import Call, Keeping, at_fault_in_words
from app.settings import settings
from app.values.headers import request_id_of, trace_id_of
from app.values.key_hashes import start_in

# Methods and paths come from callers: they are logged only where they can hold no address and no key.
_METHOD = re.compile(r"[A-Z]{1,10}")
_CLEAR_PART_OF_A_PATH = re.compile(r"(?!pts_)[A-Za-z0-9._~-]{1,40}")
_PATH_LENGTH_MAX = 100

# Monitoring calls these every few seconds: they are counted, but logged only when they fail.
_PROBES = {"/healthz", "/readyz", "/metrics"}

# Of answers with these statuses the batch in the path is there, and the caller's.
_KNOWS_THE_BATCH = (200, 409)

# The calls of this process for `GET /v1/requests`.
request_log = Keeping(count_not_kept)

_log = logs.logger()


def record_requests(app: Flask) -> None:
    """Keep a record of every request of the application."""
    app.before_request(_begin)
    app.after_request(_end_with_line if settings().access_log else _end)


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
            "method": _method(),
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
    if request.path.startswith("/v1/") and settings().request_log:
        _keep(record, response.status_code, seconds)
    return record, method, route, seconds


def _keep(record: Record, status: int, seconds: float) -> None:
    """Keep the call for the list of its key's organization."""
    key_hash = hash_of_given_key()
    if key_hash is None:
        return
    rule, batch_id = request.url_rule, record.batch_id
    if batch_id is None and status in _KNOWS_THE_BATCH:
        batch_id = (request.view_args or {}).get("batch_id")
    call = Call(
        key_hash=key_hash,
        request_id=record.trace_id,
        created_at=time.time() - seconds,
        method=_method(),
        route=None if rule is None else _path_of(rule.rule),
        status=status,
        code=record.code,
        batch_id=batch_id,
        ms=round(seconds * 1_000),
        at_fault=None if record.code else at_fault_in_words(record.at_fault, known_names()),
    )
    request_log.keep(call)


@cache
def _path_of(rule: str) -> str:
    """Return the template of a path as the description writes it: `/v1/batches/{id}`."""
    return re.sub("<[^>]+>", "{id}", rule)


def _method() -> str:
    return request.method if _METHOD.fullmatch(request.method) else NO_ROUTE[0]
