"""The rows of a list, read by Python's strict `csv`. Around a wrong quote, each line is reported."""

import csv
import re
from collections.abc import Generator, Iterable, Iterator, Sequence
from functools import partial
from itertools import chain, islice
from typing import IO, NamedTuple

from app.errors import Refused
from app.recipient_files.cells import is_blank, is_like_an_address

# Tells Excel the delimiter, in the first line.
SEPARATOR_LINE = re.compile(r'"?sep=([,;\t|])"?', re.IGNORECASE)
_LONGEST_SHOWN = 300
# Lines that are parsed by one call. In most lists each of them is a row.
_CHUNK_LINES = 1_000

_reader = partial(csv.reader, skipinitialspace=True, strict=True)


class Row(NamedTuple):
    """One row: its first line's number (from 1), its cells, and the reason if it cannot be used."""

    line: int
    cells: list[str]
    fault: str | None = None

    @property
    def shown(self) -> str:
        """The row as a person recognizes it."""
        return ", ".join(cell.strip() for cell in self.cells if cell.strip())[:_LONGEST_SHOWN]


class Unreadable(Refused):
    """The list cannot be read from `line` on."""

    def __init__(self, name: str, line: int, reason: str) -> None:
        super().__init__(f"{name} cannot be read from line {line} on: {reason}. Fix that line.")
        self.line = line
        self.reason = reason


def rows(text: IO[str], delimiter: str, name: str) -> Iterator[Row]:
    """Yield all rows that are not blank.

    Raises:
        Unreadable: the list cannot be read from some line on; the rows before have been yielded.
    """
    text.seek(0)
    line = 1
    if SEPARATOR_LINE.fullmatch(text.readline().rstrip("\r\n")):
        line = 2
    else:
        text.seek(0)
    while chunk := list(islice(text, _CHUNK_LINES)):
        if (found := _row_of_each(chunk, delimiter)) is None:
            line = yield from _row_by_row(chunk, text, delimiter, name, line)
            continue
        for number, (raw, cells) in enumerate(zip(chunk, found, strict=True), line):
            if "@" in raw or not all(map(is_blank, cells)):
                yield Row(number, cells)
        line += len(chunk)


def _row_of_each(lines: Sequence[str], delimiter: str) -> list[list[str]] | None:
    """Return the row of each line; None if a row has several lines or a wrong quote."""
    try:
        found = list(_reader(lines, delimiter=delimiter))
    except csv.Error:
        return None
    return found if len(found) == len(lines) else None


def _row_by_row(
    chunk: Sequence[str], text: IO[str], delimiter: str, name: str, start: int
) -> Generator[Row, None, int]:
    """Yield the rows that begin in a chunk, whose first line is `start`; return the number of the next line."""
    lines: list[str] = []  # The raw lines of the current row.
    reader = _reader(_recorded(chain(chunk, text), lines), delimiter=delimiter)
    while reader.line_num < len(chunk):
        line = start + reader.line_num
        lines.clear()
        try:
            cells = next(reader)
        except csv.Error as error:
            yield from _after_csv_error(line, lines, delimiter, name, str(error))
            continue
        if len(lines) > 1 and any(is_like_an_address(cell) and len(cell.splitlines()) > 1 for cell in cells):
            yield from _multi_line(line, lines)
        elif "@" in lines[0] or not all(map(is_blank, cells)):
            yield Row(line, cells)
    return start + reader.line_num


def _recorded(text: Iterable[str], lines: list[str]) -> Iterator[str]:
    for line in text:
        lines.append(line)
        yield line


def _after_csv_error(line: int, lines: list[str], delimiter: str, name: str, error: str) -> Iterator[Row]:
    if "field limit" in error:
        most = csv.field_size_limit()
        raise Unreadable(
            name, line, f"a cell has more than {most} characters, perhaps behind a quote that is never closed"
        )
    if len(lines) > 1:
        if "end of data" in error:
            raise Unreadable(name, line, "a quote is opened and never closed")
        yield from _multi_line(line, lines)
    elif (cells := _with_blanks_after_quotes(lines[0], delimiter)) is not None:
        yield Row(line, cells)
    else:
        yield Row(line, [lines[0].strip()], "has a quote that is not closed, or closed inside its cell.")


def _multi_line(line: int, lines: list[str]) -> Iterator[Row]:
    """Report each line with an address in a row of several lines: a stray quote may have swallowed whole rows."""
    found = [Row(line + place, [text.strip()]) for place, text in enumerate(lines) if is_like_an_address(text)]
    for row in found or [Row(line, [lines[0].strip()])]:
        yield row._replace(fault=f"is in a cell of several lines (from {line} on): is a quote not closed?")


def _with_blanks_after_quotes(line: str, delimiter: str) -> list[str] | None:
    """Read a line with blanks between quotes and delimiters, which `csv` refuses; None if that is not the fault."""
    text, end = line.rstrip("\r\n") + delimiter, re.escape(delimiter)
    cell = re.compile(rf'[^\S\t]*"([^"]*(?:""[^"]*)*)"[^\S\t]*{end}|([^"{end}]*){end}')
    cells, place = [], 0
    while place < len(text):
        found = cell.match(text, place)
        if found is None:
            return None
        cells.append(found[2] if found[1] is None else found[1].replace('""', '"'))
        place = found.end()
    return cells
