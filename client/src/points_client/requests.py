"""Requests: the bodies of send, verify and reverse, the queries of lists, and the checks before a call."""

import json
import operator
import re
import uuid
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any

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
        entries = value.items() if isinstance(value, Mapping) else enumerate(value) if _is_list(value) else ()
        if not isinstance(error, RecursionError):
            for name, one in entries:
                encoded(f"{name}", f"{place or 'a field'} (a name)")
                encoded(one, f"{place}.{name}".lstrip("."))
        raise ValueError(f"{place or 'The body'} cannot be sent: {_fault(value, error)}.") from None


def _is_list(value: object) -> bool:
    return isinstance(value, list | tuple)


def _fault(value: object, error: Exception) -> str:
    if isinstance(error, UnicodeEncodeError):
        return "it has half of a character (a lone surrogate), which is no text in UTF-8"
    if isinstance(error, RecursionError):
        return "it is nested without end"
    return f"JSON has no {type(value).__name__}" if isinstance(error, TypeError) else "it is not a finite number"


@dataclass(frozen=True, kw_only=True, slots=True)
class Item:
    """A recipient with its own values; None: the value of the whole send. `reference` is your own id of the item."""

    email: str
    amount: int | None = None
    label: str | None = None
    reference: str | None = None


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


def send_body(
    *,
    recipients: Sequence[str] | None,
    items: Iterable[AnyItem] | None,
    amount: int | None,
    atomic: bool,
    send_at: datetime | str | None = None,
    **more: Any,
) -> dict[str, Any]:
    """Return the body of a send or of its verify, without what is None.

    Raises:
        TypeError: `recipients` is one string, which would be sent letter by letter.
        ValueError: `send_at` has no zone.
    """
    for name, value in (("recipients", recipients), ("items", items)):
        if isinstance(value, str | bytes | Mapping):
            raise TypeError(
                f"{name} must be a sequence, and not one {'string' if isinstance(value, str) else 'value'}."
            )
    body = {
        "recipients": None if recipients is None else [*recipients],
        "items": None if items is None else [item_body(item, f"items.{place}") for place, item in enumerate(items)],
        "amount": amount,
        "atomic": atomic,
        "send_at": None if send_at is None else moment(send_at),
        **more,
    }
    return {name: value for name, value in body.items() if value is not None}


def reverse_body(
    *,
    batch: int | None,
    transactions: Iterable[int] | None,
    reason: str,
    amount: int | None,
    atomic: bool,
) -> dict[str, Any]:
    """Return the body of a reversal or of its verify, without what is None."""
    ids = None if transactions is None else [*transactions]
    body = {"batch": batch, "transactions": ids, "reason": reason, "amount": amount, "atomic": atomic}
    return {name: value for name, value in body.items() if value is not None}


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
    return moment(value) if isinstance(value, datetime) else str(value)


def types_of(types: Sequence[str] | None) -> str | None:
    """Return types of events as one parameter.

    Raises:
        TypeError: it is one string, which would be sent letter by letter.
    """
    if isinstance(types, str):
        raise TypeError("types must be a sequence of types, and not one string.")
    return None if types is None else ",".join(types)


def path(noun: str, number: int, verb: str = "") -> str:
    """Return the path of one thing: `/v1/batches/7/cancel`.

    Raises:
        ValueError: the number is no id.
    """
    try:
        found = -1 if isinstance(number, bool) else operator.index(number)
    except TypeError:
        found = -1
    if found < 0:
        raise ValueError(f"An id must be an integer of 0 or more, but is {number!r}.")
    return f"/v1/{noun}/{found}{verb and '/'}{verb}"


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
