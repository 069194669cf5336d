"""A body as a JSON object, parsed strictly."""

import codecs
import re
from collections.abc import Callable
from typing import Any, TypeVar

from pydantic_core import from_json

from app.errors import InvalidRequest
from app.fields.json_values import kind

_BYTE_ORDER_MARKS = (codecs.BOM_UTF8, codecs.BOM_UTF16_LE, codecs.BOM_UTF16_BE)
_TOO_LONG = re.compile(rb"(?<![0-9])([0-9]{4000})[0-9]{301,}")


Value = TypeVar("Value")


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
