"""JSON into the dataclasses of this package. Unknown fields are ignored, because the service may add some."""

import dataclasses
import types
import typing
from collections.abc import Callable, Mapping
from datetime import datetime
from functools import cache, partial
from typing import Any, TypeVar, cast

T = TypeVar("T")
_Convert = Callable[[Any], Any]


def read(kind: type[T], document: Mapping[str, Any]) -> T:
    """Make a dataclass from a JSON object; a field with a default may be missing.

    Raises:
        KeyError, TypeError, ValueError, AttributeError: the JSON does not fit the dataclass.
    """
    known = {}
    for name, convert in _fields(cast(Any, kind)):
        if name in document:
            value = document[name]
            known[name] = value if convert is None or value is None else convert(value)
    return kind(**known)


@cache
def _fields(kind: Any) -> list[tuple[str, _Convert | None]]:
    hints = typing.get_type_hints(kind)
    return [(field.name, _converter(hints[field.name])) for field in dataclasses.fields(kind)]


def _converter(hint: Any) -> _Convert | None:
    """Return the function that turns JSON into a value of this type; None if JSON already has that type."""
    if isinstance(hint, types.UnionType):  # `X | None`: the caller keeps None.
        [hint] = [one for one in typing.get_args(hint) if one is not type(None)]
    if hint is datetime:
        return datetime.fromisoformat
    if isinstance(hint, type) and dataclasses.is_dataclass(hint):
        return partial(read, hint)
    if typing.get_origin(hint) is tuple:
        each = _converter(typing.get_args(hint)[0])
        return tuple if each is None else lambda values: tuple(map(each, values))
    return None
