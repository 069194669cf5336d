"""The body of the request: its type, size and bytes, read as strict JSON."""

import codecs
import json
import re
from collections import Counter
from collections.abc import Callable, Iterator
from typing import Any, NoReturn, TypeVar

from flask import request
from jiter import from_json
from werkzeug.exceptions import BadRequest, RequestEntityTooLarge, RequestTimeout, UnsupportedMediaType

from app.errors import InvalidRequest
from app.fields.field import kind
from app.metrics.requests import current_record
from app.settings import Settings, settings
from app.values.validation_errors import ENTRIES_LISTED_MAX, FaultsFound, shortened

_JSON = "application/json"
TOO_SLOW = "The body must arrive within 20 s, or at 20 kB/s with a good key, but did not."

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
        BadRequest: the body ends early.
        RequestTimeout: it arrives too slowly.
        RequestEntityTooLarge: the body is longer than `POINTS_BODY_BYTES_MAX`.
    """
    _refuse_other_types()
    return _body_bytes()


def refuse_fields() -> None:
    """Refuse every field, for a call that takes none: nothing that a caller sends is ignored. No body is fine.

    Raises:
        InvalidRequest: with every fault of the body.
        HTTPException: as `json_bytes`.
    """
    if body := _body_bytes():
        _refuse_other_types()
        read_object(body, _read_nothing)


def _read_nothing(fields: dict[str, Any]) -> None:
    faults = FaultsFound()
    faults.add_unknown("field", fields, (), whole="body")
    faults.raise_if_any()


def _refuse_other_types() -> None:
    environ = request.environ
    if environ.get("CONTENT_TYPE") != _JSON and request.mimetype != _JSON:
        raise UnsupportedMediaType(f"The Content-Type must be {_JSON}, but is {request.mimetype or 'missing'}.")
    if environ.get("HTTP_CONTENT_ENCODING", "").lower() not in ("", "identity"):
        raise UnsupportedMediaType("The body must not be compressed.")


def _body_bytes() -> bytes:
    environ, limit = request.environ, settings().body_bytes_max
    length = _refuse_too_large()
    # gunicorn's, with our time limits; absent in tests without a server. A caller with a good key may take longer.
    caller_socket = environ.get("gunicorn.socket")
    if caller_socket is not None and current_record().has_good_key:
        caller_socket.trust(length)
    try:
        # Read from gunicorn directly: Werkzeug's streams are slow.
        # Without a declared length, one byte above the limit shows that the body is too long.
        body: bytes = environ["wsgi.input"].read(limit + 1 if length is None else length)
    except OSError:
        if caller_socket is not None and caller_socket.is_too_slow:
            raise RequestTimeout(TOO_SLOW) from None
        raise BadRequest("The body ended early.") from None
    if caller_socket is not None:
        caller_socket.give_place_back()
    if len(body) < (length or 0):
        raise BadRequest("The body ended before its Content-Length.")
    if len(body) > limit:
        raise RequestEntityTooLarge
    return body


def _refuse_too_large() -> int | None:
    """Return the declared length of the body, or None."""
    length = request.content_length
    if length is not None and length > settings().body_bytes_max:
        raise RequestEntityTooLarge
    return length


_BYTE_ORDER_MARKS = (codecs.BOM_UTF8, codecs.BOM_UTF16_LE, codecs.BOM_UTF16_BE)
_TOO_LONG = re.compile(rb"(?<![0-9])([0-9]{4000})[0-9]{301,}")


def read_object(body: bytes, read: Callable[[dict[str, Any]], Value]) -> Value:
    """Parse strictly (UTF-8, no lone surrogates, bounded nesting, an object at the top), and read the fields.

    Raises:
        InvalidRequest: on `body`, or what `read` raises.
    """
    if body.startswith(_BYTE_ORDER_MARKS):
        raise InvalidRequest({"body": ["The body must be a JSON object in UTF-8: leave out the byte order mark."]})
    try:
        fields = from_json(body, allow_inf_nan=False, cache_mode="keys", catch_duplicate_keys=True)
    except ValueError:
        _refuse(body, read)
    return read(_require_object(fields))


def _require_object(value: Any) -> dict[str, Any]:
    if not isinstance(value, dict):
        raise InvalidRequest({"body": [f"The body must be a JSON object, but is {kind(value)}."]})
    return value


def _refuse(body: bytes, read: Callable[[dict[str, Any]], object]) -> NoReturn:
    """Refuse a body that is not strict JSON, with every fault that can be found.

    Some libraries write NaN and Infinity, which are not JSON. An integer may have more digits than the parser takes.
    Such a body is refused on its fields if these have a fault, for they have a better sentence. A name that stands
    twice is a fault beside those of the fields.
    """
    whole: dict[str, list[str]] = {}
    try:
        value = from_json(body, allow_inf_nan=False, cache_mode="keys")
    except ValueError as error:
        whole = {"body": [f"The body must be a JSON object in UTF-8: {error}."]}
        try:
            # A shortened integer is still out of range, so its field reports the fault.
            value = from_json(_TOO_LONG.sub(rb"\1", body), allow_inf_nan=True, cache_mode="keys")
        except ValueError:
            raise InvalidRequest(whole) from None
    fields, twice = _require_object(value), names_twice(body)
    try:
        read(fields)
    except InvalidRequest as invalid:
        found = invalid.faults
        both = {**found, **{name: [*found.get(name, ()), *sentences] for name, sentences in twice.items()}}
        raise InvalidRequest(both) from None
    raise InvalidRequest({**whole, **twice})


_Pairs = list[tuple[str, Any]]
# The names and places that lead to a value: the last one, and those before it. Few of them are written out.
_Path = tuple[Any, ...]


def names_twice(body: bytes) -> dict[str, list[str]]:
    """Return a fault for each name that stands twice in its object, keyed by its place: `items.3.amount`.

    The body is JSON. Of many such names, the first 100 are told. This takes longer than parsing the body, and is for
    refused bodies only.
    """
    faults: dict[str, list[str]] = {}
    # A number stays text: it may be too long for Python.
    value = json.loads(body, object_pairs_hook=_object, parse_int=str, parse_float=str)
    for path in _find(value, ()):
        if len(faults) >= ENTRIES_LISTED_MAX:
            faults.setdefault("body", []).append("More names stand several times in their objects.")
            break
        faults[_written(path)] = ["The name must stand once in its object, but stands there several times."]
    return faults


def _object(pairs: _Pairs) -> dict[str, Any] | tuple[_Pairs]:
    """Return an object; as its pairs in a tuple, which JSON does not have, if a name stands twice."""
    found = dict(pairs)
    return found if len(found) == len(pairs) else (pairs,)


def _find(value: Any, path: _Path) -> Iterator[_Path]:
    if isinstance(value, tuple):
        [pairs] = value
        yield from ((path, name) for name, times in Counter(name for name, _ in pairs).items() if times > 1)
        value = dict(pairs)
    for name, inner in value.items() if isinstance(value, dict) else enumerate(value):
        if isinstance(inner, dict | list | tuple):
            yield from _find(inner, (path, name))


def _written(path: _Path) -> str:
    names: list[str] = []
    while path:
        path, name = path
        names.append(shortened(str(name)))
    return ".".join(reversed(names)) or "body"
