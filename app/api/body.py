"""Reading a request's body: its type, its size, its bytes. What is in it, `schemas` checks."""

from flask import request
from werkzeug.exceptions import BadRequest, RequestEntityTooLarge, UnsupportedMediaType

from app.settings import settings

_JSON = "application/json"


def json_bytes() -> bytes:
    """Return the body as bytes.

    Raises:
        UnsupportedMediaType: it is not declared as `application/json`, or it is compressed.
        BadRequest: it breaks off, or comes too slowly.
        RequestEntityTooLarge: it is longer than `POINTS_BODY_BYTES_MAX`.
    """
    environ, limit = request.environ, settings().body_bytes_max
    if environ.get("CONTENT_TYPE") != _JSON and request.mimetype != _JSON:
        raise UnsupportedMediaType(f"The Content-Type must be {_JSON}, but is {request.mimetype or 'missing'}.")
    if environ.get("HTTP_CONTENT_ENCODING", "").lower() not in ("", "identity"):
        raise UnsupportedMediaType("The body must not be compressed.")
    length = refuse_too_large()
    try:
        # From the server as it is: the streams that Werkzeug puts around it take longer than all else here.
        # One byte more than may be sent, so that a body without a length can be seen to be too long.
        body: bytes = environ["wsgi.input"].read(limit + 1 if length is None else length)
    except OSError:
        raise BadRequest("The body ended early, or came too slowly.") from None
    if len(body) < (length or 0):
        raise BadRequest("The body ended before its Content-Length.")
    if len(body) > limit:
        raise RequestEntityTooLarge
    return body


def refuse_too_large() -> int | None:
    """Return the length that the body is declared with, or None.

    Raises:
        RequestEntityTooLarge: it is longer than `POINTS_BODY_BYTES_MAX`.
    """
    length = request.content_length
    if length is not None and length > settings().body_bytes_max:
        raise RequestEntityTooLarge
    return length
