"""The rows of a list, read by Python's strict `csv`; its delimiter, and the row that names its columns."""

import csv
import re
from collections.abc import Collection, Generator, Iterable, Iterator, Mapping, Sequence
from functools import partial
from itertools import chain, islice
from types import MappingProxyType
from typing import IO, NamedTuple

from app.errors import InvalidAddress, Refused
from app.recipient_files.cells import address_in, heading_name, is_blank, is_like_an_address
from app.recipient_files.workbook_process import DOUBT, HIDDEN

# Tells Excel the delimiter, in the first line.
SEPARATOR_LINE = re.compile(r'"?sep=([,;\t|])"?', re.IGNORECASE)
_LONGEST_SHOWN = 300
# Lines that are parsed at once. In most lists each of them is a row.
_CHUNK_LINES = 1_000

_reader = partial(csv.reader, skipinitialspace=True, strict=True)


class Row(NamedTuple):
    """One row: its first line's number (from 1), its cells, and the reason if it cannot be used.

    Of a workbook, `doubts` tells by its place (from 0) what a cell that misleads holds.
    """

    line: int
    cells: list[str]
    fault: str | None = None
    doubts: Mapping[int, str] = MappingProxyType({})
    is_hidden: bool = False

    @property
    def in_words(self) -> str:
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
        if (rows_of_chunk := _row_of_each(chunk, delimiter)) is None:
            line = yield from _row_by_row(chunk, text, delimiter, name, line)
            continue
        for number, (raw, cells) in enumerate(zip(chunk, rows_of_chunk, strict=True), line):
            if DOUBT in raw or HIDDEN in raw:
                yield _marked(number, cells)
            elif "@" in raw or not all(map(is_blank, cells)):
                yield Row(number, cells)
        line += len(chunk)


def _marked(line: int, cells: list[str]) -> Row:
    """Return a row of a workbook with marks, which `workbook_process` has written, or of a text that holds the like."""
    parts = [cell.removeprefix(HIDDEN).partition(DOUBT) for cell in cells]
    doubts = {place: doubt for place, (_, mark, doubt) in enumerate(parts) if mark}
    return Row(line, [text for text, _, _ in parts], None, doubts, cells[0].startswith(HIDDEN))


def _row_of_each(lines: Sequence[str], delimiter: str) -> list[list[str]] | None:
    """Return the row of each line; None if a row has several lines or a wrong quote."""
    try:
        rows_of_lines = list(_reader(lines, delimiter=delimiter))
    except csv.Error:
        return None
    return rows_of_lines if len(rows_of_lines) == len(lines) else None


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
            yield _marked(line, cells)
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
    suspects = [Row(line + place, [text.strip()]) for place, text in enumerate(lines) if is_like_an_address(text)]
    for row in suspects or [Row(line, [lines[0].strip()])]:
        yield row._replace(fault=f"is in a cell of several lines (from {line} on): is a quote not closed?")


def _with_blanks_after_quotes(line: str, delimiter: str) -> list[str] | None:
    """Read a line with blanks between quotes and delimiters, which `csv` refuses; None if that is not the fault."""
    text, end = line.rstrip("\r\n") + delimiter, re.escape(delimiter)
    cell = re.compile(rf'[^\S\t]*"([^"]*(?:""[^"]*)*)"[^\S\t]*{end}|([^"{end}]*){end}')
    cells, place = [], 0
    while place < len(text):
        match = cell.match(text, place)
        if match is None:
            return None
        cells.append(match[2] if match[1] is None else match[1].replace('""', '"'))
        place = match.end()
    return cells


_SAMPLE_ROWS = 50
_DELIMITERS = {",": "commas", ";": "semicolons", "\t": "tabs"}


class Beginning(NamedTuple):
    """The first rows, read with one delimiter. `headings` has more than one row only if the heading is repeated."""

    delimiter: str
    sample: list[Row]
    headings: list[Row]
    # Line and column (from 0) of each cell that holds an address.
    addresses: list[tuple[int, int]]


def beginning(text: IO[str], name: str, wanted: Collection[str], delimiter: str | None) -> Beginning:
    """Read the first rows. A heading has a cell with a `wanted` name, and is above every address.

    Args:
        delimiter: what is between the cells, if that is known.

    Raises:
        Refused: the list is empty, cannot be read, or can be read in two ways.
    """
    text.seek(0)
    separator = SEPARATOR_LINE.fullmatch(text.readline().rstrip("\r\n"))
    possible = delimiter or (separator[1] if separator else _DELIMITERS)
    readings = [_read(text, name, mark, wanted) for mark in possible]
    if not readings[0].sample:
        raise Refused(f"{name} is empty.")
    best = max(readings, key=lambda reading: (len(reading.addresses), bool(reading.headings)))
    if rival := next((other for other in readings if other is not best and _may_be_meant(other, best)), None):
        raise Refused(
            f"{name} may have {_DELIMITERS[best.delimiter]} or {_DELIMITERS[rival.delimiter]} between its cells:"
            " use one of them only, and put a cell that holds it in quotes."
        )
    _require_one_heading(best, name, wanted)
    return best


def _read(text: IO[str], name: str, delimiter: str, wanted: Collection[str]) -> Beginning:
    sample: list[Row] = []
    try:
        sample.extend(islice(rows(text, delimiter, name), _SAMPLE_ROWS))
    except Unreadable:
        if not sample:
            raise
    good = [row for row in sample if row.fault is None]
    addresses = [(row.line, place) for row in good for place, cell in enumerate(row.cells) if _is_address(cell)]
    naming = [row for row in good if _named(row, wanted) and not _holds_address(row)]
    # A later row may hold the word as plain data. It is a heading only if its column holds addresses.
    places = {place for row in good for place, cell in enumerate(row.cells) if is_like_an_address(cell)}
    headings = [row for row in naming if not places.isdisjoint(_named(row, wanted))]
    first_address = next((row.line for row in sample if _holds_address(row)), None)
    if not headings:
        headings = [row for row in naming if first_address is None or row.line < first_address][:1]
    return Beginning(delimiter, sample, headings, addresses)


def _may_be_meant(other: Beginning, best: Beginning) -> bool:
    """Tell whether another reading, which would pay other recipients, may be right."""
    as_good = len(other.addresses) == len(best.addresses) and other.addresses != best.addresses
    if other.headings:
        return as_good or [row.cells for row in other.headings] != [row.cells for row in best.headings]
    # A reading with a heading wins, unless the heading holds the other delimiter too.
    return as_good and all(any(other.delimiter in cell for cell in row.cells) for row in best.headings)


def _require_one_heading(reading: Beginning, name: str, wanted: Collection[str]) -> None:
    for first, other in ((reading.headings[0], other) for other in reading.headings[1:]):
        # `ListFile.rows` reports a repeated heading as a bad line.
        if _named(first, wanted) != _named(other, wanted):
            raise Refused(f"Lines {first.line} and {other.line} of {name} both look like its heading: remove one.")
    for first in reading.headings[:1]:
        if any(row.line < first.line and _holds_address(row) for row in reading.sample):
            raise Refused(
                f"Line {first.line} of {name} looks like its heading, but there are addresses above it: put it first."
            )


def _named(row: Row, wanted: Collection[str]) -> list[int]:
    """Return the indexes of the cells with a wanted name."""
    return [place for place, cell in enumerate(row.cells) if heading_name(cell) in wanted]


def _holds_address(row: Row) -> bool:
    return any(map(is_like_an_address, row.cells))


def _is_address(cell: str) -> bool:
    try:
        address_in(cell)
    except InvalidAddress:
        return False
    return True
