"""The recipients of a request, in order: addresses, or items with their own amount, label and reference."""

from collections.abc import Mapping, Sequence
from itertools import accumulate
from typing import Any

from app.batches.fields import AMOUNT, ITEM, ITEM_AMOUNT, ITEM_LABEL, ITEM_REFERENCE, ITEMS
from app.errors import Fault, InvalidAddress
from app.fields.field import is_missing, kind
from app.settings import INT64_MAX, Settings
from app.values.addresses import Address, is_costly, parse
from app.values.validation_errors import FaultsFound

_NAMES = frozenset(ITEM.names)

# The place of an item in the list, and the item.
_Placed = tuple[int, dict[str, Any]]
COSTLY_CHARACTERS_MAX = 20_000


class _CostLimit:
    """The limit of costly entries that are parsed once a list has so many faults that no more are named."""

    def __init__(self, faults: FaultsFound) -> None:
        self._faults = faults
        self._characters = 0

    def forbids(self, key: str, entry: str) -> bool:
        """Tell whether to skip the entry at `key`, and count it as skipped."""
        if not self._faults.list_is_full or not is_costly(entry):
            return False
        self._characters += len(entry)
        if self._characters <= COSTLY_CHARACTERS_MAX:
            return False
        self._faults.skip_entry(key)
        return True


def read_recipients(entries: Sequence[Any], faults: FaultsFound, limits: Settings) -> list[Address]:
    """Return the addresses without a fault."""
    addresses = []
    first_places: dict[str, int] = {}
    limit = _CostLimit(faults)
    for place, entry in enumerate(entries):
        if not isinstance(entry, str):
            sentence = f"The entry must be a string with an e-mail address, but is {kind(entry)}."
            faults.add_entry(f"recipients.{place}", sentence)
            continue
        if faults.list_is_full and limit.forbids(f"recipients.{place}", entry):
            continue
        try:
            address = parse(entry)
        except InvalidAddress as error:
            faults.add_entry(f"recipients.{place}", f"The entry {error.sentence}")
            continue
        first = first_places.setdefault(address.key, place)
        if first != place and not limits.allow_repeats:
            faults.add_entry(f"recipients.{place}", f"The entry is the same address as recipients.{first}.")
        addresses.append(address)
    return addresses


class Items:
    """The items of a request, column by column, in order.

    `amounts` are points. A label or a reference is None where the item has none; a label that repeats the default is
    None too. Once an item is at fault, the request is refused, and the columns only serve to find more faults.
    """

    def __init__(self, fields: Mapping[str, Any], faults: FaultsFound, limits: Settings) -> None:
        """Read `items`, with `amount` and `label` beside them as defaults; a fault is keyed by place: `items.3.amount`.

        Faults of the defaults are reported elsewhere.
        """
        self.addresses: list[Address] = []
        self.amounts: list[int] = []
        self.labels: list[str | None] = []
        self.references: list[str | None] = []
        self._default_label = fields.get("label")
        is_good = AMOUNT.fault(default := fields.get("amount"), limits) is None
        self._default_amount: int | None = default if is_good else None
        self._has_bad_default = not is_good and not is_missing(default)
        self._faults = faults
        self._limits = limits
        self._cost_limit = _CostLimit(faults)
        self._read(ITEMS.read(fields, faults, limits) or [])

    def columns(self) -> dict[str, Any]:
        """Return the fields of an `IssueRequest` in which items differ from one amount for all."""
        is_uniform = len(set(self.amounts)) == 1
        return {
            "amount": self.amounts[0] if is_uniform else None,
            "running_totals": None if is_uniform else list(accumulate(self.amounts)),
            "labels": None if _is_empty(self.labels) else self.labels,
            "references": None if _is_empty(self.references) else self.references,
        }

    def _read(self, items: Sequence[Any]) -> None:
        placed = []
        for place, item in enumerate(items):
            if not isinstance(item, dict):
                self._faults.add_entry(f"items.{place}", f"The item must be an object, but is {kind(item)}.")
                continue
            if not item.keys() <= _NAMES:
                self._faults.add_unknown_in_entry(f"items.{place}", item, ITEM.names)
            placed.append((place, item))
        # Column by column, in plain loops: twice as fast as item by item.
        self._read_references(placed)  # Before the addresses: with a reference, an address may come twice.
        self._read_addresses(placed)
        self._read_amounts(placed)
        self._read_labels(placed)
        if (points := sum(self.amounts)) > INT64_MAX:
            limit = f"must not exceed {INT64_MAX} points, but are {points}"
            self._faults.add("items", f"The amounts of all items together {limit}.")

    def _read_references(self, placed: list[_Placed]) -> None:
        first_places: dict[str, int] = {}
        for place, item in placed:
            reference: Any = item.get("reference")
            self.references.append(reference)
            if reference is None:
                continue
            if (sentence := ITEM_REFERENCE.fault(reference, self._limits)) is not None:
                self._faults.add_entry(f"items.{place}.reference", sentence)
            elif (first := first_places.setdefault(reference, place)) != place:
                same = f"The reference is the same as items.{first}.reference."
                self._faults.add_entry(f"items.{place}.reference", same)

    def _read_addresses(self, placed: list[_Placed]) -> None:
        first_numbers: dict[str, int] = {}
        for number, (place, item) in enumerate(placed):
            email = item.get("email")
            if not isinstance(email, str) or not email:
                wrong = "field is required" if email in (None, "") else f"must be a string, but is {kind(email)}"
                self._faults.add_entry(f"items.{place}.email", Fault("The email", f"{wrong}."))
                continue
            if self._faults.list_is_full and self._cost_limit.forbids(f"items.{place}", email):
                continue
            try:
                address = parse(email)
            except InvalidAddress as error:
                self._faults.add_entry(f"items.{place}.email", Fault("The email", error.sentence))
                continue
            first = first_numbers.setdefault(address.key, number)
            if first != number and not self._may_come_twice(first, number):
                same = f"The email is the same address as items.{placed[first][0]}.email"
                self._faults.add_entry(f"items.{place}.email", f"{same}: if that is meant, give each a reference.")
            self.addresses.append(address)

    def _may_come_twice(self, first: int, later: int) -> bool:
        both_have_references = self.references[first] is not None and self.references[later] is not None
        return both_have_references or self._limits.allow_repeats

    def _read_amounts(self, placed: list[_Placed]) -> None:
        at_most = self._limits.amount_max
        for place, item in placed:
            amount = item.get("amount")
            if type(amount) is int and 1 <= amount <= at_most:
                self.amounts.append(amount)
            elif amount is not None:
                sentence = ITEM_AMOUNT.fault(amount, self._limits)
                assert sentence is not None, "a value that is not an integer within the limits is a fault"
                self._faults.add_entry(f"items.{place}.amount", sentence)
            elif self._default_amount is not None:
                self.amounts.append(self._default_amount)
            elif not self._has_bad_default:  # A bad default is reported once, for the body.
                missing = "The amount field is required: neither the item nor the body has one."
                self._faults.add_entry(f"items.{place}.amount", missing)

    def _read_labels(self, placed: list[_Placed]) -> None:
        for place, item in placed:
            label = item.get("label")
            if label in (None, "", self._default_label):
                label = None
            elif (sentence := ITEM_LABEL.fault(label, self._limits)) is not None:
                self._faults.add_entry(f"items.{place}.label", sentence)
            self.labels.append(label)


def _is_empty(column: list[str | None]) -> bool:
    return column.count(None) == len(column)
