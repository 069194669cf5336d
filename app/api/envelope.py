"""The envelope around every answer, and the status and code of each error."""

from collections.abc import Mapping
from importlib.metadata import version
from typing import Any

import orjson
from flask import Response

from app.batches.verify import Verdict
from app.errors import Faults, PointsError
from app.metrics.requests import note_code
from app.reversals.request import Recoverable

INTERFACE_VERSION = "1.0"
SERVICE_VERSION = version("points-issuing-service")

# On every answer.
HEADERS = {"Cache-Control": "no-store, private", "Vary": "Accept, Authorization", "Via": "1.1 points"}

# The codes of errors that have no class in `app.errors`.
CODES = {
    404: "not_found",
    405: "method_not_allowed",
    408: "body_too_slow",
    413: "body_too_large",
    415: "unsupported_media_type",
    429: "rate_limited",
    500: "internal_error",
    503: "not_ready",
}
# On an expected error with status 429 or 503.
_RETRY_AFTER_S = 2


def success(data: Mapping[str, Any], *, status: int = 200, **additional: object) -> Response:
    """Wrap the payload of a success; `additional` joins the version in `additional_data`."""
    if "code" in additional:
        note_code(None if additional["code"] is None else str(additional["code"]))
    document = {
        "success": True,
        "data": data,
        "errors": None,
        "additional_data": {"version": INTERFACE_VERSION, **additional},
    }
    return Response(orjson.dumps(document), status=status, content_type="application/json")


def nothing() -> Response:
    """Answer 204, without a body."""
    response = Response(status=204)
    del response.headers["Content-Type"]
    return response


def failure_document(status: int, faults: Faults, code: str | None = None, **beside: int) -> bytes:
    """Render the envelope of an error. The code is left out on a 400; if none is given, the status decides it."""
    word = None if status == 400 else code or CODES.get(status, CODES[500])
    note_code(word, faults.keys())
    additional = None if word is None else {"code": word, **beside}
    return orjson.dumps({"success": False, "data": None, "errors": faults, "additional_data": additional})


def failure(status: int, faults: Faults, code: str | None = None, **beside: int) -> Response:
    """Wrap the sentences of an error: field name to a non-empty array. `code` is for programs, and so is `beside`.

    A 400 is sent chunked, because the interface document gives it a `Transfer-Encoding`. An iterator as the body has no
    length, so the server sends it in chunks.
    """
    body = failure_document(status, faults, code, **beside)
    return Response(iter([body]) if status == 400 else body, status=status, content_type="application/json")


def failure_of(error: PointsError) -> Response:
    """Wrap an expected error, with the status of its class."""
    response = failure(error.status, error.faults, error.code, **error.beside)
    if error.status == 401:
        response.headers["WWW-Authenticate"] = "Bearer"
    if error.status in (429, 503):
        response.headers["Retry-After"] = str(_RETRY_AFTER_S)
    return response


def verdict_payload(verdict: Verdict | Recoverable) -> dict[str, Any]:
    """Verify result of a send or a reversal: `{"validated": bool, "error": string or null}`."""
    return {
        "validated": verdict.refusal is None,
        "error": None if verdict.refusal is None else verdict.refusal.sentence,
    }
