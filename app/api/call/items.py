"""`items`: each recipient with an amount, a label and a reference of its own."""

from itertools import accumulate
from typing import Any

from app.api.call.faults import FaultsFound
from app.api.call.fields import amount_fault, label_fault, reference_fault
from app.api.call.json_body import is_missing, kind
from app.api.call.recipients import CostLimit
from app.errors import InvalidAddress
from app.settings import INT64_MAX, Settings
from app.values.addresses import Address, parse

ITEM_FIELDS = ("email", "amount", "label", "reference")
_FIELDS = frozenset(ITEM_FIELDS)


class Items:
    """The items of one body, column by column, in order.

    `amounts` are points. A label or a reference is None where the item has none of its own; a default that is spelled
    out is none of its own. Once an item is at fault the request is refused: then the columns only serve to find more.
    """

    def __init__(self, body: dict[str, Any], faults: FaultsFound, settings: Settings) -> None:
        """Read `items`, with the body's `amount` and `label` as defaults; a fault is keyed by place: `items.3.amount`.

        The defaults' own faults are not told here.
        """
        self.addresses: list[Address] = []
        self.amounts: list[int] = []
        self.labels: list[str | None] = []
        self.references: list[str | None] = []
        self._default_amount, self._default_label = body.get("amount"), body.get("label")
        self._faults = faults
        self._settings = settings
        self._cost_limit = CostLimit(faults)
        self._places_of_addresses: dict[str, int] = {}
        self._places_of_references: dict[str, int] = {}
        self._read(body["items"])

    def columns(self) -> dict[str, Any]:
        """Return what differs from a request of one amount for all, as the fields of an `IssueRequest`."""
        is_uniform = len(set(self.amounts)) == 1
        return {
            "amount": self.amounts[0] if is_uniform else None,
            "running_totals": None if is_uniform else list(accumulate(self.amounts)),
            "labels": None if _is_empty(self.labels) else self.labels,
            "references": None if _is_empty(self.references) else self.references,
        }

    def _read(self, items: object) -> None:
        if not isinstance(items, list):
            self._faults.add("items", f"The items must be an array of objects, but are {kind(items)}.")
            return
        at_most = self._settings.recipients_max
        if len(items) > at_most:
            self._faults.add("items", f"There must be at most {at_most} items, but there are {len(items)}.")
        for place, item in enumerate(items[:at_most]):
            if isinstance(item, dict):
                self._read_item(place, item)
            else:
                self._faults.add_entry(f"items.{place}", f"The item must be an object, but is {kind(item)}.")
                self.labels.append(None)
                self.references.append(None)
        if sum(self.amounts) > INT64_MAX:
            self._faults.add("items", f"The amounts of all items together must not exceed {INT64_MAX} points.")

    def _read_item(self, place: int, item: dict[str, Any]) -> None:
        if not item.keys() <= _FIELDS:
            self._faults.add_unknown_in_entry(f"items.{place}", item, ITEM_FIELDS)
        self._read_label(place, item.get("label"))
        self._read_reference(place, item.get("reference"))  # Before the address: with one, it may come twice.
        self._read_address(place, item.get("email"))
        self._read_amount(place, item.get("amount"))

    def _read_label(self, place: int, label: object) -> None:
        if is_missing(label) or label == self._default_label:
            label = None
        elif (sentence := label_fault(label)) is not None:
            self._faults.add_entry(f"items.{place}.label", sentence)
        self.labels.append(label)  # type: ignore[arg-type]  # A string, or the request is refused.

    def _read_reference(self, place: int, reference: object) -> None:
        if is_missing(reference):
            self.references.append(None)
            return
        if (sentence := reference_fault(reference)) is not None:
            self._faults.add_entry(f"items.{place}.reference", sentence)
        elif (first := self._places_of_references.setdefault(reference, place)) != place:  # type: ignore[arg-type]
            sentence = f"The reference is the same as items.{first}.reference."
            self._faults.add_entry(f"items.{place}.reference", sentence)
        self.references.append(reference)  # type: ignore[arg-type]  # As above.

    def _read_address(self, place: int, email: object) -> None:
        key = f"items.{place}.email"
        if is_missing(email):
            self._faults.add_entry(key, "The email field is required.")
            return
        if not isinstance(email, str):
            self._faults.add_entry(key, f"The email must be a string with an e-mail address, but is {kind(email)}.")
            return
        if self._faults.list_is_full and self._cost_limit.forbids(email):
            return
        try:
            address = parse(email)
        except InvalidAddress as error:
            self._faults.add_entry(key, f"The email {error.sentence}")
            return
        first = self._places_of_addresses.setdefault(address.key, place)
        if first != place and not self._may_come_twice(first, place):
            same = f"The email is the same address as items.{first}.email"
            self._faults.add_entry(key, f"{same}: where that is meant, both have a reference.")
        self.addresses.append(address)

    def _may_come_twice(self, first: int, later: int) -> bool:
        with_references = self.references[first] is not None and self.references[later] is not None
        return with_references or self._settings.allow_repeats

    def _read_amount(self, place: int, amount: object) -> None:
        if is_missing(amount):
            amount = self._default_amount
            if is_missing(amount):
                sentence = "The amount field is required: neither the item nor the body has one."
                self._faults.add_entry(f"items.{place}.amount", sentence)
                return
            if amount_fault(amount, self._settings) is not None:
                return  # Told once, of the body.
        elif (fault := amount_fault(amount, self._settings)) is not None:
            self._faults.add_entry(f"items.{place}.amount", fault)
            return
        self.amounts.append(amount)  # type: ignore[arg-type]  # An integer, or it is at fault.


def _is_empty(column: list[str | None]) -> bool:
    return column.count(None) == len(column)
