"""Reading a request's body: its type, its size, its bytes. What is in it, `schemas` checks."""

from flask import request
from gunicorn.http.errors import ParseException
from werkzeug.exceptions import BadRequest, RequestEntityTooLarge, UnsupportedMediaType

from app.settings import settings


def json_bytes() -> bytes:
    """Return the body as bytes.

    Raises:
        UnsupportedMediaType: it is not declared as `application/json`, or it is compressed.
        BadRequest: it breaks off, or is not framed as HTTP says.
        RequestEntityTooLarge: it is longer than `POINTS_BODY_BYTES_MAX`.
    """
    if request.mimetype != "application/json":
        raise UnsupportedMediaType(
            f"The Content-Type must be application/json, but is {request.mimetype or 'missing'}."
        )
    if request.headers.get("Content-Encoding", "identity") != "identity":
        raise UnsupportedMediaType("The body must not be compressed.")
    try:
        body = request.get_data(cache=False)
    except (ParseException, OSError):
        raise BadRequest("The body ended early, or its chunks are not well-formed.") from None
    if len(body) < (request.content_length or 0):
        raise BadRequest("The body ended before its Content-Length.")
    if len(body) > settings().body_bytes_max:
        raise RequestEntityTooLarge
    return body
