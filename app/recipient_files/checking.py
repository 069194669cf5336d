"""Checking a whole list before anything is sent: who would be paid, which lines are left out, and why."""

from collections.abc import Callable, Generator, Iterator, Sequence
from contextlib import closing
from typing import Any, BinaryIO, NamedTuple

from app.errors import Refused
from app.recipient_files.columns import OWN, columns_of, unused_columns
from app.recipient_files.list_file import ListFile
from app.recipient_files.recipients import BadLine, Part, Recipients
from app.recipient_files.rows import Row
from app.recipient_files.text import ListText, opened
from app.settings import INT64_MAX


class AmountsMissing(Refused):
    """Neither the list nor the person says how many points each recipient gets."""

    def __init__(self, name: str) -> None:
        super().__init__(f"{name} has no column “amount” or “points”: give the points for each recipient.")


class Reading:
    """A list that is open: its file, the columns that are used, and the recipients that are read so far."""

    def __init__(self, text: ListText, *, column: str | None, has_amount: bool, keeps_bad_rows: bool = False) -> None:
        """Find the columns.

        Args:
            column: the heading or the number of the column of the addresses, if a person has chosen it.
            has_amount: whether a person has given the points for each recipient.

        Raises:
            ColumnUnclear: the column of the addresses is ambiguous.
            AmountsMissing: the list has no column of amounts, and there is no amount for all.
            Refused: the list cannot be read.
        """
        self.file = ListFile(text, column=column, others=OWN)
        self.columns = columns_of(self.file, with_amount=has_amount)
        if not has_amount and self.columns.amount is None:
            raise AmountsMissing(self.file.name)
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
    which maps each use (address, amount, reference, label) to the title of its column; `unused`; the `first` and `last`
    addresses; and `campaign`, the id that `points send` would give to this list.
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
    column: int | None,
    amount: int | None,
    label: str | None,
    amount_max: int,
    size: int,
) -> Generator[Progress, None, Checked]:
    """Read a whole list, and tell now and then how far that is.

    Args:
        sheet: the name of a workbook's sheet, if a person has chosen it.
        column: the column of the addresses (from 0), if a person has chosen it.
        amount: the points for each recipient; None: each line has its own.
        amount_max: the most points of a line.
        size: recipients in a part.

    Raises:
        SheetUnclear: several sheets of a workbook hold addresses.
        ColumnUnclear: the column of the addresses is ambiguous.
        AmountsMissing: the list has no column of amounts, and there is no amount for all.
        Refused: the list cannot be read, or has nobody to pay.
    """
    number = None if column is None else str(column + 1)
    with (
        opened(raw, name, sheet=sheet, is_kept=True) as text,
        closing(Reading(text, column=number, has_amount=amount is not None, keeps_bad_rows=True)) as reading,
    ):
        file, columns, recipients = reading.file, reading.columns, reading.recipients
        if column is not None and columns.address != column:
            raise Refused(f"{name} has a heading that is a number: give its columns other headings.")
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
                "columns": {use: file.title(at) for use, at in {"address": columns.address, **columns.own}.items()},
                "unused": unused_columns(file, columns),
                "first": recipients.first,
                "last": list(recipients.last),
                "campaign": recipients.campaign(amount=amount, label=label, again=None),
            },
        )


def _nobody(file: ListFile, column: int, bad: Sequence[BadLine]) -> str:
    first = f" Line {bad[0].line}: {bad[0].reason}" if bad else ""
    return f"{file.name} holds no e-mail address to send to in {file.title(column)}.{first}"
