"""Values as JSON has them: what counts as missing, and the names of their types for sentences."""

from math import isfinite

from app.settings import INT64_MAX

_NAMES = {
    str: "a string",
    int: "an integer",
    float: "a number with a fraction or an exponent",
    list: "an array",
    dict: "an object",
    bool: "a boolean",
    type(None): "null",
}


def is_missing(value: object) -> bool:
    """Tell whether a value counts as missing: absent, `null`, `""` or `[]` (contract, request body)."""
    return value is None or value in ("", [])


def is_integer(value: object) -> bool:
    """Tell whether a value is an integer; `true` is not."""
    return isinstance(value, int) and not isinstance(value, bool)


def kind(value: object) -> str:
    """Return a value's JSON type in words, without the value."""
    if isinstance(value, float) and not isfinite(value):
        return "a number that is not finite"
    return _NAMES[type(value)]


def shown_number(number: int) -> str:
    """Return a number for a sentence; one beyond 64 bits may be of any length and is not shown."""
    return str(number) if abs(number) <= INT64_MAX else "a number beyond 64 bits"
