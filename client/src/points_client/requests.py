"""Requests: the bodies of send, verify and reverse, the queries of lists, and the checks before a call."""

import json
import operator
import re
import uuid
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any, TypeVar

from points_client.results import Item

T = TypeVar("T")
PATIENCE_S, WAIT_S = 60.0, 60.0


@dataclass(frozen=True, kw_only=True)
class Call:
    """One call. With an idempotency `key` it is done once, however often it is tried.

    `wait_s`: how long to wait for what it makes; 0: not at all; None: it makes nothing that is waited for.
    `repeatable`: doing it twice has the effect of once, by the key or by its nature. Otherwise it is tried again only
    if the try before surely did nothing.
    """

    method: str
    path: str
    body: Mapping[str, Any] | None = None
    query: Mapping[str, str] | None = None
    key: str | None = None
    wait_s: float | None = None
    repeatable: bool = True

    @property
    def changes(self) -> bool:
        """Whether it may change something."""
        return self.method != "GET" and not self.path.endswith(("/verify", "/sent-before"))

    def content(self) -> bytes | None:
        """Return the body as JSON.

        Raises:
            ValueError: a value cannot be sent; the sentence names its place, such as `items.3.label`.
        """
        return None if self.body is None else encoded(self.body)


def encoded(value: Any, place: str = "") -> bytes:
    """Return a value as JSON in UTF-8.

    Raises:
        ValueError: it cannot be; the sentence names the innermost place.
    """
    try:
        return json.dumps(value, ensure_ascii=False, allow_nan=False, separators=(",", ":")).encode()
    except (RecursionError, TypeError, ValueError) as error:
        values = enumerate(value) if isinstance(value, list | tuple) else ()
        entries = value.items() if isinstance(value, Mapping) else values
        if not isinstance(error, RecursionError):
            for name, one in entries:
                encoded(f"{name}", f"{place or 'a field'} (a name)")
                encoded(one, f"{place}.{name}".lstrip("."))
        raise ValueError(f"{place or 'The body'} cannot be sent: {_fault(value, error)}.") from None


def _fault(value: object, error: Exception) -> str:
    if isinstance(error, UnicodeEncodeError):
        return "it has half of a character (a lone surrogate), which is no text in UTF-8"
    if isinstance(error, RecursionError):
        return "it is nested without end"
    return f"JSON has no {type(value).__name__}" if isinstance(error, TypeError) else "it is not a finite number"


AnyItem = Item | Mapping[str, Any]


def item_body(item: AnyItem | str, place: str) -> dict[str, Any]:
    """Return an item as JSON, without what is None.

    Raises:
        TypeError: it is none.
    """
    if isinstance(item, str):
        return {"email": item}
    if isinstance(item, Item):
        item = {name: getattr(item, name) for name in Item.__dataclass_fields__}
    if not isinstance(item, Mapping):
        raise TypeError(f"{place} must be an Item, a mapping or an address, but is {type(item).__name__}.")
    return {name: value for name, value in item.items() if value is not None}


def send_body(*, items: Sequence[AnyItem] | None, **more: Any) -> dict[str, Any]:
    """Return the body of a send or of its verify, without what is None.

    Raises:
        TypeError: an item is none.
        ValueError: `send_at` has no zone.
    """
    bodies = None if items is None else [item_body(item, f"items.{place}") for place, item in enumerate(items)]
    return body(items=bodies, **more)


def query(**filters: Any) -> dict[str, str]:
    """Return the parameters of a list, without what is None.

    Raises:
        ValueError: a filter is no text in UTF-8, or a moment without a zone.
    """
    found = {name: _parameter(value) for name, value in filters.items() if value is not None}
    for name, value in found.items():
        encoded(value, name)
    return found


def _parameter(value: Any) -> str:
    if isinstance(value, bool):
        return str(value).lower()
    if isinstance(value, list):
        return ",".join(value)
    return moment(value) if isinstance(value, datetime) else str(value)


def body(**fields: Any) -> dict[str, Any]:
    """Return the body of a call, without what is None.

    Raises:
        ValueError: a moment has no zone.
    """
    given = {name: value for name, value in fields.items() if value is not None}
    return {name: moment(value) if isinstance(value, datetime) else value for name, value in given.items()}


def listed(name: str, values: Iterable[T] | None) -> list[T] | None:
    """Return a field of several values, such as types of events, as an array.

    Raises:
        TypeError: it is one string, which would be sent letter by letter.
    """
    if isinstance(values, str | bytes | Mapping):
        raise TypeError(f"{name} must be a sequence, and not one {'string' if isinstance(values, str) else 'value'}.")
    return None if values is None else [*values]


def path(*parts: str | int) -> str:
    """Return the path of nouns, ids and a verb, in turn: `/v1/batches/7/cancel`.

    Raises:
        ValueError: an id is none.
    """
    return "/v1/" + "/".join(str(_id(part)) if place % 2 else str(part) for place, part in enumerate(parts))


def _id(number: Any) -> int:
    try:
        if not isinstance(number, bool) and (found := operator.index(number)) >= 0:
            return found
    except TypeError:
        pass
    raise ValueError(f"An id must be an integer of 0 or more, but is {number!r}.")


def moment(value: datetime | str) -> str:
    """Return a moment as ISO 8601.

    Raises:
        ValueError: it has no zone.
    """
    if isinstance(value, str):
        return value
    if value.tzinfo is None:
        raise ValueError("A moment must have a zone, such as datetime(2026, 1, 31, 9, 30, tzinfo=UTC).")
    return value.isoformat()


def key_of(idempotency_key: str | None) -> str:
    """Return an idempotency key as it is given, or a new one.

    Raises:
        ValueError: the service would not take it.
    """
    if idempotency_key is None:
        return str(uuid.uuid4())
    if not re.fullmatch(r"[!-~]{1,255}", idempotency_key):
        raise ValueError("idempotency_key must be 1 to 255 visible ASCII characters, without blanks.")
    return idempotency_key
