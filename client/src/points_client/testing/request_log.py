"""The calls that `FakePoints` has answered, for `GET /v1/requests`."""

import re
from collections.abc import Callable
from datetime import UTC, datetime
from typing import Any

import httpx

_ID = re.compile(r"/[0-9]{1,18}(?=/|\Z)")
_BATCH = re.compile(r"/v1/batches/([0-9]{1,18})")


class RequestLog:
    """What was called with the one key, and what was answered. A call takes no time."""

    def __init__(self) -> None:
        self._rows: list[dict[str, Any]] = []
        self._ids = 0

    def note(self, request: httpx.Request, answer: httpx.Response, *, is_listed: bool) -> None:
        """Give the answer of a call an id, and note the call if it is listed: one with another key is in no list."""
        self._ids += 1
        request_id = request.headers.get("X-Request-Id", f"fake-{self._ids}")
        answer.headers["X-Request-Id"] = request_id
        if is_listed:
            self._rows.append(_row(request, answer, request_id))

    def listed(self, is_asked_for: Callable[[dict[str, Any]], bool]) -> list[dict[str, Any]]:
        """Return the calls that are asked for, newest first."""
        return [row for row in reversed(self._rows) if is_asked_for(row)]


def _row(request: httpx.Request, answer: httpx.Response, request_id: str) -> dict[str, Any]:
    path, additional = request.url.path, answer.json()["additional_data"] or {}
    batch_id = additional.get("batch_id")
    if batch_id is None and answer.status_code == 200 and (named := _BATCH.fullmatch(path)):
        batch_id = int(named[1])
    return {
        "request_id": request_id,
        "created_at": f"{datetime.now(UTC):%Y-%m-%dT%H:%M:%S.%fZ}",
        "api_key_id": 1,
        "method": request.method,
        "route": _ID.sub("/{id}", path),
        "status": answer.status_code,
        "code": additional.get("code"),
        "batch_id": batch_id,
        "ms": 0,
    }
