"""Names that stand twice in an object of a body: which of the two was meant is never guessed."""

import json
from collections import Counter
from collections.abc import Iterator
from typing import Any

from app.values.validation_errors import ENTRIES_LISTED_MAX, shortened

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
