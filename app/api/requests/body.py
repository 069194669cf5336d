"""Reading a request's body: its type, size and bytes, and the JSON object that it holds."""

from collections.abc import Callable
from typing import Any

from flask import request
from werkzeug.exceptions import BadRequest, RequestEntityTooLarge, UnsupportedMediaType

from app.api.requests.json_object import Value, read_object
from app.settings import Settings, settings

_JSON = "application/json"


def read_json(read: Callable[[dict[str, Any], Settings], Value]) -> Value:
    """Return what `read` makes of the body's fields, with the limits of the settings.

    Raises:
        InvalidRequest: with every fault of the body.
        HTTPException: as `json_bytes`.
    """
    return read_object(json_bytes(), lambda fields: read(fields, settings()))


def json_bytes() -> bytes:
    """Return the body as bytes.

    Raises:
        UnsupportedMediaType: the body is not declared as `application/json`, or is compressed.
        BadRequest: the body ends early, or arrives too slowly.
        RequestEntityTooLarge: the body is longer than `POINTS_BODY_BYTES_MAX`.
    """
    environ, limit = request.environ, settings().body_bytes_max
    if environ.get("CONTENT_TYPE") != _JSON and request.mimetype != _JSON:
        raise UnsupportedMediaType(f"The Content-Type must be {_JSON}, but is {request.mimetype or 'missing'}.")
    if environ.get("HTTP_CONTENT_ENCODING", "").lower() not in ("", "identity"):
        raise UnsupportedMediaType("The body must not be compressed.")
    length = refuse_too_large()
    try:
        # Read from gunicorn directly: Werkzeug's streams are slow.
        # Without a declared length, one byte above the limit shows that the body is too long.
        body: bytes = environ["wsgi.input"].read(limit + 1 if length is None else length)
    except OSError:
        raise BadRequest("The body ended early or arrived too slowly.") from None
    if len(body) < (length or 0):
        raise BadRequest("The body ended before its Content-Length.")
    if len(body) > limit:
        raise RequestEntityTooLarge
    return body


def refuse_too_large() -> int | None:
    """Return the declared length of the body, or None.

    Raises:
        RequestEntityTooLarge: longer than `POINTS_BODY_BYTES_MAX`.
    """
    length = request.content_length
    if length is not None and length > settings().body_bytes_max:
        raise RequestEntityTooLarge
    return length
