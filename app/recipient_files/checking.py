"""Checking a whole list before anything is sent: who would be paid, which lines are left out, and why."""

from collections.abc import Callable, Generator, Iterator, Sequence
from contextlib import closing
from typing import Any, BinaryIO, NamedTuple

from app.errors import Refused
from app.recipient_files.cells import trimmed
from app.recipient_files.columns import Chosen, columns_of, unused_columns
from app.recipient_files.list_file import Column, ListFile
from app.recipient_files.recipients import FIRST_ROWS, BadLine, Part, Recipients
from app.recipient_files.rows import Row
from app.recipient_files.text import ListText, opened
from app.settings import INT64_MAX


class AmountsMissing(Refused):
    """Neither the list nor the person says how many points each recipient gets. `figures` names what may be them."""

    def __init__(self, file: ListFile, address: int) -> None:
        places = [place for place in file.figures() if place != address]
        self.figures = f"{file.listed(places)} hold{'s' if len(places) == 1 else ''} figures" if places else ""
        self.titles = titles_of(file)
        or_choose = f", or choose their column: {self.figures}" if places else ""
        super().__init__(
            f"{file.name} has no column “amount” or “points”: give the points for each recipient{or_choose}."
        )


class Reading:
    """A list that is open: its file, the columns that are used, and the recipients that are read so far."""

    def __init__(
        self,
        text: ListText,
        *,
        column: Column | None,
        chosen: Chosen,
        has_amount: bool,
        keeps_bad_rows: bool = False,
    ) -> None:
        """Find the columns.

        Args:
            column: the column of the addresses, if a person has given it; `chosen`: the others.
            has_amount: whether a person has given the points for each recipient.

        Raises:
            ColumnUnclear: the column of the addresses is ambiguous.
            AmountsMissing: the list has no column of amounts, and there is no amount for all.
            Refused: the list cannot be read.
        """
        self.file = ListFile(text, column=column, others=chosen.headings)
        self.columns = columns_of(self.file, chosen, with_amount=has_amount)
        if not has_amount and self.columns.amount is None:
            raise AmountsMissing(self.file, self.columns.address)
        self.recipients = Recipients(keeps_bad_rows=keeps_bad_rows)
        self.close = self.recipients.close

    def parts(self, amount_max: int, size: int, advance_to: Callable[[int], None] = lambda _: None) -> Iterator[Part]:
        """Read the list. Yield each part of `size` recipients once it is read.

        Args:
            amount_max: the most points of a line.
            advance_to: is called with the number of bytes that are read.
        """
        return self.recipients.read(self.file, self.columns, amount_max, size, advance_to)


class Checked(NamedTuple):
    """What a list holds. `points` is the sum for all recipients, and `bad_rows` are the rows of the `bad` lines.

    `digest` is equal for lists that name the same recipients in the same order, with the same references and labels.
    `findings` are for a page: `sheet`, the title of a workbook's sheet; `heading`, the list's own columns; `columns`,
    which maps each use (address, amount, reference, label) to the title of its column; `titles`, of all columns by
    place; `unused`; `figures`, the columns that are not used and hold figures; the `first` and `last` addresses;
    `preview`, the first rows; and `campaign`, the id that `points send` would give to this list.
    """

    parts: Sequence[Part]
    recipients: int
    points: int
    bad: Sequence[BadLine]
    bad_rows: Sequence[Row]
    digest: str
    findings: dict[str, Any]


class Progress(NamedTuple):
    """How many lines of a list are read, of about how many."""

    lines: int
    about: int


# A shorter list is checked at once.
TOLD_EVERY_LINES = 20_000


def checking(
    raw: BinaryIO,
    name: str,
    *,
    sheet: str | None,
    hidden_rows: str | None,
    column: int | None,
    chosen: Chosen,
    amount: int | None,
    label: str | None,
    amount_max: int,
    size: int,
) -> Generator[Progress, None, Checked]:
    """Read a whole list, and tell now and then how far that is.

    Args:
        sheet: the name of a workbook's sheet, if a person has chosen it; `hidden_rows`: what becomes of those.
        column: the column of the addresses (from 0), if a person has chosen it; `chosen`: the others.
        amount: the points for each recipient; None: each line has its own.
        amount_max: the most points of a line.
        size: recipients in a part.

    Raises:
        SheetUnclear: several sheets of a workbook hold addresses.
        HiddenRowsUnclear: rows of the sheet are hidden.
        ColumnUnclear: the column of the addresses is ambiguous.
        AmountsMissing: the list has no column of amounts, and there is no amount for all.
        Refused: the list cannot be read, or has nobody to pay.
    """
    has_amount = amount is not None
    with (
        opened(raw, name, sheet=sheet, hidden_rows=hidden_rows, is_kept=True) as text,
        closing(Reading(text, column=column, chosen=chosen, has_amount=has_amount, keeps_bad_rows=True)) as reading,
    ):
        file, columns, recipients = reading.file, reading.columns, reading.recipients
        parts, last_line_told = [], 0
        for part in reading.parts(amount_max, size):
            parts.append(part)
            if (line := part.lines[-1]) - last_line_told >= TOLD_EVERY_LINES:
                last_line_told = line
                yield Progress(line, max(line, line * file.size_bytes // max(1, file.bytes_read)))
        if not recipients.count:
            raise Refused(_nobody(file, columns.address, recipients.bad))
        points = recipients.points(amount)
        if points > INT64_MAX:
            raise Refused(f"{name} needs more points in all than a balance can hold: send it in several lists.")
        return Checked(
            parts=parts,
            recipients=recipients.count,
            points=points,
            bad=recipients.bad,
            bad_rows=recipients.bad_rows,
            digest=recipients.campaign(amount=None, label=None, again=None),
            findings={
                "sheet": None if file.sheet is None else file.sheet.title,
                "heading": file.heading(columns.address),
                "columns": {use: file.title(at) for use, at in columns.uses.items()},
                "titles": titles_of(file),
                "unused": unused_columns(file, columns),
                "figures": [file.title(at) for at in file.figures() if has_amount and at not in columns.uses.values()],
                "preview": _preview(reading),
                "first": recipients.first,
                "last": list(recipients.last),
                "campaign": recipients.campaign(amount=amount, label=label, again=None),
            },
        )


def titles_of(file: ListFile) -> list[tuple[int, str]]:
    """Return the columns that a person can choose, by their places."""
    return [(place, file.title(place)) for place in file.columns()]


def _preview(reading: Reading) -> list[dict[str, Any]]:
    """Return the first rows: the cells of the uses, in their order; the use of a faulty cell (None: all); and why."""
    recipients, uses = reading.recipients, reading.columns.uses
    reasons = {line.line: line.reason for line in recipients.bad[:FIRST_ROWS]}
    return [
        {
            "line": row.line,
            "cells": [trimmed(row.cells[at]) if at < len(row.cells) else "" for at in uses.values()],
            "reason": reasons.get(row.line),
            "faulty": recipients.faulty.get(row.line),
        }
        for row in recipients.first_rows
    ]


def _nobody(file: ListFile, column: int, bad: Sequence[BadLine]) -> str:
    first = f" Line {bad[0].line}: {bad[0].reason}" if bad else ""
    return f"{file.name} holds no e-mail address to send to in {file.title(column)}.{first}"
