"""JSON into the dataclasses of this package. Unknown fields are ignored, because the service may add some."""

import dataclasses
import types
import typing
from collections.abc import Callable, Mapping
from datetime import date, datetime
from functools import cache, partial
from typing import Any, TypeVar, cast

T = TypeVar("T")
_Convert = Callable[[Any], Any]


def read(kind: type[T], document: Mapping[str, Any]) -> T:
    """Make a dataclass from a JSON object; a field with a default may be missing.

    Raises:
        KeyError, TypeError, ValueError, AttributeError: the JSON does not fit the dataclass.
    """
    fields = _fields(cast(Any, kind))
    return kind(**{name: convert(document[json]) for name, json, convert in fields if json in document})


@cache
def _fields(kind: Any) -> list[tuple[str, str, _Convert]]:
    """Return each field with its name in JSON, which may be a word that Python keeps for itself, such as `from`."""
    hints = typing.get_type_hints(kind)
    return [(field.name, field.name.rstrip("_"), _converter(hints[field.name])) for field in dataclasses.fields(kind)]


def _converter(hint: Any) -> _Convert:
    """Return the function that turns JSON into a value of this type, and takes no other."""
    if isinstance(hint, types.UnionType):  # `X | None`.
        [inner] = [_converter(one) for one in typing.get_args(hint) if one is not type(None)]
        return lambda value: None if value is None else inner(value)
    if hint in (date, datetime):
        parse: _Convert = hint.fromisoformat
        return parse
    if dataclasses.is_dataclass(hint):
        return partial(read, cast(Any, hint))
    origin = typing.get_origin(hint)
    if origin is tuple:
        each = _converter(typing.get_args(hint)[0])
        return lambda values: tuple(map(each, _of(list | tuple, values)))
    return partial(_of, dict if origin is Mapping else hint)


def _of(kind: Any, value: Any) -> Any:
    if not isinstance(value, kind) or (isinstance(value, bool) and kind is int):
        raise TypeError(f"It is {type(value).__name__}, and not {kind}.")
    return value
