"""Requests: the bodies of send, verify and reverse, the queries of lists, and the checks before a call."""

import re
import uuid
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any
from urllib.parse import urlsplit

import httpx

LOCAL_HOSTS = ("127.0.0.1", "localhost", "::1")
PATIENCE_S, WAIT_S = 60.0, 60.0


@dataclass(frozen=True, kw_only=True, slots=True)
class Item:
    """A recipient with its own values; None: the value of the whole send. `reference` is your own id of the item."""

    email: str
    amount: int | None = None
    label: str | None = None
    reference: str | None = None


AnyItem = Item | Mapping[str, Any]


def item_body(item: AnyItem) -> dict[str, Any]:
    """Return an item as JSON, without what is None."""
    found = item if isinstance(item, Mapping) else {name: getattr(item, name) for name in Item.__dataclass_fields__}
    return {name: value for name, value in found.items() if value is not None}


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
    if isinstance(recipients, str):
        raise TypeError("recipients must be a sequence of addresses, and not one string.")
    body = {
        "recipients": None if recipients is None else [*recipients],
        "items": None if items is None else [item_body(item) for item in items],
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
    """Return the parameters of a list, without what is None."""
    return {name: _parameter(value) for name, value in filters.items() if value is not None}


def _parameter(value: Any) -> str:
    if isinstance(value, bool):
        return str(value).lower()
    return moment(value) if isinstance(value, datetime) else str(value)


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


def new_key() -> str:
    """Return a new idempotency key."""
    return str(uuid.uuid4())


def base_url(url: str) -> str:
    """Return the address of the service without a slash at its end.

    Raises:
        ValueError: it does not begin with http:// or https://, or names no host.
    """
    parts = urlsplit(url)
    if parts.scheme not in ("http", "https") or not parts.hostname:
        raise ValueError(f"The URL {url} must begin with http:// or https:// and name a host.")
    try:
        return str(httpx.URL(url.rstrip("/")))
    except httpx.InvalidURL as error:
        raise ValueError(f"The URL {url} is not valid: {error}.") from None


def is_local(url: str) -> bool:
    """Tell whether an address is on this machine, so that no proxy of the environment is used."""
    return urlsplit(url).hostname in LOCAL_HOSTS


def checked_key(key: str) -> str:
    """Return an API key without the blanks around it.

    Raises:
        ValueError: it is not a key. The sentence does not repeat it.
    """
    if not re.fullmatch(r"[!-~]+", key.strip()):
        raise ValueError("A key holds letters, digits and _ only: copy it once more.")
    return key.strip()
