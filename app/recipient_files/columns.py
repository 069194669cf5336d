"""The columns of a list that are used, and the item of each row: an address, with an amount, reference and label."""

import re
from collections.abc import Collection
from dataclasses import dataclass
from functools import cached_property
from typing import Any, NamedTuple

from app.errors import PointsError, Refused
from app.recipient_files.cells import address_in, from_spreadsheet, trimmed, unmarked
from app.recipient_files.list_file import Column, ListFile
from app.recipient_files.rows import Row
from app.values.addresses import Address
from app.values.texts import LABEL_LENGTH_MAX, REFERENCE, REFERENCE_LENGTH_MAX, shown

AMOUNT = ("amount", "points")
# The headings of all columns with a line's own values.
OWN = (*AMOUNT, "reference", "label")
# The column in a list of unpaid recipients that `points send` has written. It makes the list another campaign.
UNPAID_BATCH = "unpaid_batch_id"
CONTROL = re.compile("[\x00-\x1f\x7f-\x9f\u2028\u2029]+")
# 1,000 is a thousand to some and one to others; so is 1.000.
_TWO_WAYS = re.compile("[0-9]{1,3}[.,][0-9]{3}")
_WHOLE_NUMBER = re.compile("[1-9][0-9]{0,18}")


class BadCell(PointsError):
    """A line has a cell that cannot be used; the sentence is the reason why the line is left out."""

    status = 400

    def __init__(self, sentence: str, use: str | None) -> None:
        super().__init__(sentence)
        self.use = use  # Of the cell; None: the whole row cannot be used.


class Item(NamedTuple):
    """A recipient with its own values; None where the list has none for it."""

    email: str
    amount: int | None = None
    reference: str | None = None
    label: str | None = None

    @property
    def body(self) -> dict[str, Any]:
        """The item as it is in a request's body."""
        return {name: value for name, value in zip(self._fields, self, strict=True) if value is not None}

    @property
    def is_plain(self) -> bool:
        return self.count(None) == 3  # All but the address.


@dataclass(frozen=True, kw_only=True)
class Columns:
    """The places (from 0) of the columns that are used; None where the list has no such column."""

    address: int
    amount: int | None = None
    reference: int | None = None
    label: int | None = None
    unpaid_batch: int | None = None
    # Whether the texts are marked, because the list holds lines that were left out of another.
    is_marked: bool = False

    @cached_property
    def has_own(self) -> bool:
        """Whether other columns than that of the addresses are used."""
        return bool(self.own) or self.unpaid_batch is not None

    @property
    def uses(self) -> dict[str, int]:
        """The columns that a person knows of, by what they are used for."""
        return {"address": self.address, **self.own}

    @property
    def own(self) -> dict[str, int]:
        """The columns with each line's own values, by name."""
        places = {"amount": self.amount, "reference": self.reference, "label": self.label}
        return {name: place for name, place in places.items() if place is not None}

    def read(self, row: Row, *, amount_max: int, is_unicode: bool) -> tuple[Address, Item]:
        """Return the address and the item of a row; `amount_max` is the most points of a line.

        Raises:
            InvalidAddress: there is not exactly one address.
            BadCell: the row does not fit the heading, or another cell cannot be used.
        """
        if row.fault is not None:
            raise BadCell(row.fault, next((use for use, place in self.uses.items() if place in row.doubts), None))
        if self.is_marked:
            row = row._replace(cells=list(map(unmarked, row.cells)))
        address = address_in(row.cells[self.address], is_unicode=is_unicode)
        if not self.has_own:
            return address, Item(address.text)
        amount = None if self.amount is None else _amount_in(row.cells[self.amount], amount_max)
        reference = None if self.reference is None else trimmed(row.cells[self.reference])
        label = None if self.label is None else trimmed(row.cells[self.label])
        if self.unpaid_batch is not None:  # `points send` has written this list from a result file.
            reference, label = unmarked(reference or ""), from_spreadsheet(label or "")
        reference = _reference_in(reference, is_unicode=is_unicode) if reference else None
        return address, Item(address.text, amount, reference, _label_in(label) if label else None)


class Chosen(NamedTuple):
    """The columns with each line's own values as a person has given them; None: by the heading; `NOT_USED`: none."""

    amount: Column | None = None
    reference: Column | None = None
    label: Column | None = None

    @property
    def headings(self) -> set[str]:
        """What may be the headings of these columns."""
        return {*OWN, *(column for column in self if isinstance(column, str))}


NOT_USED = -1


def columns_of(file: ListFile, chosen: Chosen, *, with_amount: bool) -> Columns:
    """Find the columns that are used; `with_amount`: an amount for all is given, so the list's amounts are not used.

    Raises:
        ColumnUnclear: the column of the addresses is ambiguous or missing.
        Refused: another column is there twice, is not there, or is to be used for two things.
    """
    address = file.address_column()

    def only(column: Column | None, names: Collection[str], what: str) -> int | None:
        if column is not None:
            return None if column == NOT_USED else file.column(column)
        places = [place for place in file.places(names) if place != address]
        if len(places) > 1:
            way_out = ", or give one amount for all" if names is AMOUNT else ""
            raise Refused(f"{file.listed(places)} of {file.name} may hold the {what}: keep one of them{way_out}.")
        return places[0] if places else None

    columns = Columns(
        address=address,
        amount=None if with_amount else only(chosen.amount, AMOUNT, "amounts"),
        reference=only(chosen.reference, ["reference"], "references"),
        label=only(chosen.label, ["label"], "labels"),
        unpaid_batch=next(iter(file.places([UNPAID_BATCH])), None),
        is_marked=file.is_of_left_out_lines and file.sheet is None,
    )
    used = list(columns.uses.values())
    if twice := [place for place in used if used.count(place) > 1]:
        raise Refused(f"{file.title(twice[0])} of {file.name} can be used for one thing only.")
    return columns


def unused_columns(file: ListFile, columns: Columns) -> list[str]:
    """Name the columns that are not used, and the other sheets of a workbook that hold addresses."""
    addresses = file.others(columns.address)
    titles = [
        f"the addresses in {file.title(place)}" if place in addresses else file.title(place)
        for place in file.columns()
        if place not in (*columns.uses.values(), columns.unpaid_batch)
    ]
    return titles + [f"the addresses in the sheet {sheet.title}" for sheet in file.other_sheets]


def _amount_in(cell: str, amount_max: int) -> int:
    text = trimmed(cell)
    if not text:
        raise BadCell("has no amount.", "amount")
    if not _WHOLE_NUMBER.fullmatch(text) or (amount := int(text)) > amount_max:
        has = f"has the amount {shown(text)}{', which can be read in two ways' * bool(_TWO_WAYS.fullmatch(text))}"
        raise BadCell(f"{has}: it must be a whole number from 1 to {amount_max}, in digits alone.", "amount")
    return amount


def _reference_in(text: str, *, is_unicode: bool) -> str:
    fault = None
    if len(text) > REFERENCE_LENGTH_MAX:
        fault = f"has a reference of {len(text)} characters: there may be at most {REFERENCE_LENGTH_MAX}."
    elif not REFERENCE.fullmatch(text):
        fault = f"has the reference {shown(text)}: it must not hold blanks or characters that are not visible."
    elif not (is_unicode or text.isascii()):
        fault = "has a reference that may be read wrongly: save the list as CSV in UTF-8."
    if fault is not None:
        raise BadCell(fault, "reference")
    return text


def _label_in(text: str) -> str:
    if len(text) > LABEL_LENGTH_MAX:
        raise BadCell(f"has a label of {len(text)} characters: there may be at most {LABEL_LENGTH_MAX}.", "label")
    if CONTROL.search(text):
        raise BadCell("has a label of several lines, or with a tab or another control character.", "label")
    return text
