"""The body as JSON: strict parsing, and the names of JSON types for sentences."""

import codecs
import re
from math import isfinite
from typing import Any

from pydantic_core import from_json

from app.errors import InvalidRequest

_BYTE_ORDER_MARKS = (codecs.BOM_UTF8, codecs.BOM_UTF16_LE, codecs.BOM_UTF16_BE)
_TOO_LONG = re.compile(rb"(?<![0-9])([0-9]{4000})[0-9]{301,}")


def parse_object(body: bytes) -> tuple[dict[str, Any], InvalidRequest | None]:
    """Parse strictly: UTF-8, no lone surrogates, bounded nesting, and an object at the top.

    Some libraries write NaN and Infinity, which are not JSON. An integer may have more digits than the parser takes.
    Such a body is returned with a refusal. The caller raises it unless a field has a better sentence.

    Raises:
        InvalidRequest: on `body`.
    """
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


def is_missing(value: object) -> bool:
    """Tell whether a value counts as missing: absent, `null`, `""` or `[]` (contract, request body)."""
    return value is None or value in ("", [])


def is_integer(value: object) -> bool:
    """Tell whether a value is an integer; `true` is not."""
    return isinstance(value, int) and not isinstance(value, bool)


def kind(value: object) -> str:
    """Return a value's JSON type in words, without the value."""
    if isinstance(value, bool):
        return "a boolean"
    if isinstance(value, float) and not isfinite(value):
        return "a number that is not finite"
    names = {str: "a string", int: "an integer", float: "a number with a fraction or an exponent"}
    names |= {list: "an array", dict: "an object", type(None): "null"}
    return names[type(value)]
