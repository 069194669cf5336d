"""The parts of a long send: streamed from any iterable, each with a key from the run's name and its number."""

import re
import unicodedata
from dataclasses import dataclass
from typing import Any

from points_client.requests import AnyItem, encoded, item_body

PART_SIZE = 10_000


@dataclass(frozen=True, kw_only=True)
class Part:
    """One send of a run."""

    key: str
    items: list[dict[str, Any]]
    expect: dict[str, int]


class Run:
    """The items of a run, in parts of `size`. Whether an address or a reference may come again is one rule for all
    parts, and not only within a part, where the service sees to it.

    Raises:
        ValueError: `name` cannot begin an idempotency key, or `size` is less than 1.
    """

    def __init__(self, name: str, *, amount: int | None, size: int, allow_repeats: bool) -> None:
        if not re.fullmatch(r"[!-~]{1,230}", name):
            raise ValueError("A run is named by 1 to 230 visible ASCII characters.")
        if size < 1:
            raise ValueError("part_size must be 1 or more.")
        self._name, self._amount, self._size, self._allow_repeats = name, amount, size, allow_repeats
        self._items: list[dict[str, Any]] = []
        self._parts = self._count = 0
        self._addresses: dict[int, int] = {}  # Hashes, because a run may be long: its place, below 0 with a reference.
        self._references: dict[int, int] = {}

    def add(self, item: AnyItem | str) -> Part | None:
        """Add an item, and return the part that is full with it.

        Raises:
            ValueError: it cannot be sent, or it repeats an earlier one; nothing of its part is sent.
        """
        place = f"items.{self._count}"
        body = item_body(item, place)
        encoded(body, place)
        self._require_new(body, place)
        self._items.append(body)
        self._count += 1
        return self.rest() if len(self._items) == self._size else None

    def rest(self) -> Part | None:
        """Return what was added since the last part, as one; None if that is nothing."""
        if not self._items:
            return None
        self._parts += 1
        items, self._items = self._items, []
        return Part(key=f"{self._name}-part-{self._parts}", items=items, expect=_expect(items, self._amount))

    def _require_new(self, body: dict[str, Any], place: str) -> None:
        email, reference = body.get("email"), body.get("reference")
        if isinstance(reference, str) and reference:
            first = self._references.setdefault(hash(reference), self._count)
            if first != self._count:
                raise ValueError(f"{place}.reference is the same as items.{first}.reference.")
        if not isinstance(email, str) or self._allow_repeats:
            return
        marked = -self._count - 1 if reference else self._count
        first = self._addresses.setdefault(hash(unicodedata.normalize("NFC", email.strip().lower())), marked)
        if first != marked and not (first < 0 and marked < 0):
            earlier = first if first >= 0 else -first - 1
            raise ValueError(
                f"{place}.email is the same address as items.{earlier}.email: if that is meant, give each a reference."
            )


def _expect(items: list[dict[str, Any]], amount: int | None) -> dict[str, int]:
    """Return the control totals; without the points if an item has none, a fault that the service then reports."""
    own = [item.get("amount", amount) for item in items]
    points = [each for each in own if isinstance(each, int)]
    return {"recipients": len(items), **({"amount": sum(points)} if len(points) == len(own) else {})}
