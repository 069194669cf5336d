"""The body as JSON: parsed strictly, and its values named by their kind."""

import codecs
import re
from math import isfinite
from typing import Any

from pydantic_core import from_json

from app.errors import InvalidRequest

_BYTE_ORDER_MARKS = (codecs.BOM_UTF8, codecs.BOM_UTF16_LE, codecs.BOM_UTF16_BE)
_TOO_LONG = re.compile(rb"(?<![0-9])([0-9]{4000})[0-9]{301,}")


def parse_object(body: bytes) -> tuple[dict[str, Any], InvalidRequest | None]:
    """Parse strictly: UTF-8, no lone surrogates, bounded nesting; the top must be an object.

    NaN and Infinity are no JSON, and yet written by some libraries, and an integer may have more digits than the parser
    takes: a body with them is returned with its refusal, which holds if no field has a better one.

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
            # An integer too long to be read is as wrong when it is shorter, and then its field is known.
            value = from_json(_TOO_LONG.sub(rb"\1", body), allow_inf_nan=True, cache_strings="keys")
        except ValueError:
            raise refusal from None
    if not isinstance(value, dict):
        raise InvalidRequest({"body": [f"The body must be a JSON object, but is {kind(value)}."]})
    return value, refusal


def is_missing(value: object) -> bool:
    """Absent, `null`, `""` and `[]` all count as missing (contract, request body)."""
    return value is None or value in ("", [])


def is_integer(value: object) -> bool:
    """Tell whether a value is an integer; `true` is none."""
    return isinstance(value, int) and not isinstance(value, bool)


def kind(value: object) -> str:
    """Name what was seen by its JSON type, without repeating it."""
    if isinstance(value, bool):
        return "a boolean"
    if isinstance(value, float) and not isfinite(value):
        return "a number that is not finite"
    names = {str: "a string", int: "an integer", float: "a number with a fraction or an exponent"}
    names |= {list: "an array", dict: "an object", type(None): "null"}
    return names[type(value)]
