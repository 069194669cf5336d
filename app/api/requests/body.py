"""The body of the request: its type, size and bytes, read as strict JSON."""

import codecs
import re
from collections.abc import Callable
from typing import Any, TypeVar

from flask import request
from pydantic_core import from_json
from werkzeug.exceptions import BadRequest, RequestEntityTooLarge, UnsupportedMediaType

from app.errors import InvalidRequest
from app.fields.field import kind
from app.settings import Settings, settings

_JSON = "application/json"

Value = TypeVar("Value")


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


_BYTE_ORDER_MARKS = (codecs.BOM_UTF8, codecs.BOM_UTF16_LE, codecs.BOM_UTF16_BE)
_TOO_LONG = re.compile(rb"(?<![0-9])([0-9]{4000})[0-9]{301,}")


def read_object(body: bytes, read: Callable[[dict[str, Any]], Value]) -> Value:
    """Parse strictly (UTF-8, no lone surrogates, bounded nesting, an object at the top), and read the fields.

    Some libraries write NaN and Infinity, which are not JSON. An integer may have more digits than the parser takes.
    Such a body is refused after its fields are read, since a field may have a better sentence.

    Raises:
        InvalidRequest: on `body`, or what `read` raises.
    """
    fields, refusal = _parse(body)
    value = read(fields)
    if refusal is not None:
        raise refusal
    return value


def _parse(body: bytes) -> tuple[dict[str, Any], InvalidRequest | None]:
    refusal = None
    if body.startswith(_BYTE_ORDER_MARKS):
        raise InvalidRequest({"body": ["The body must be a JSON object in UTF-8: leave out the byte order mark."]})
    try:
        value = from_json(body, allow_inf_nan=False, cache_strings="keys")
    except ValueError as error:
        refusal = InvalidRequest({"body": [f"The body must be a JSON object in UTF-8: {error}."]})
        try:
            # A shortened integer is still out of range, so its field reports the fault.
            value = from_json(_TOO_LONG.sub(rb"\1", body), allow_inf_nan=True, cache_strings="keys")
        except ValueError:
            raise refusal from None
    if not isinstance(value, dict):
        raise InvalidRequest({"body": [f"The body must be a JSON object, but is {kind(value)}."]})
    return value, refusal
