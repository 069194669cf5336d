"""CSV files that people bring: read line by line, whichever program has written them."""

import csv
import io
import re
from collections.abc import Iterator
from dataclasses import dataclass
from itertools import islice
from pathlib import Path
from statistics import mode
from typing import IO

from app.addresses import parse
from app.errors import InvalidAddress, Refused

# What a workbook begins with: it is an archive.
_ZIP = b"PK\x03\x04"
_DELIMITERS = ",;\t|"
SAMPLE_BYTES = 65_536
_SAMPLE_ROWS = 50


@dataclass(frozen=True, kw_only=True, slots=True)
class Row:
    """One row: the number of its first line in the file, counted from 1, its cells, and why it cannot be read."""

    line: int
    cells: list[str]
    fault: str | None = None


class Unreadable(Refused):
    """The file cannot be read from `line` on: a quote is opened and never closed, or it is no CSV file at all."""

    def __init__(self, name: str, line: int, reason: str) -> None:
        super().__init__(f"{name} cannot be read from line {line} on: {reason}. Fix that line.")
        self.line = line
        self.reason = reason


class CsvFile:
    """A CSV file in UTF-8, or in UTF-16 with a byte order mark; commas, semicolons, tabs or bars between its cells.

    What is not UTF-8 in it comes as lone surrogates, which no address and no name may hold: a file
    of another encoding can be read as long as the cells that matter are plain.
    """

    def __init__(self, path: Path) -> None:
        self.name = path.name
        self._raw = path.open("rb")
        if not self._raw.seekable():
            self._raw.close()
            raise Refused(f"{self.name} can be read only once, and must be read twice: save it as a file first.")
        self.size = self._raw.seek(0, io.SEEK_END)
        self._raw.seek(0)
        sample = self._raw.read(SAMPLE_BYTES)
        if sample.startswith(_ZIP):
            self._raw.close()
            raise Refused(f"{self.name} is a workbook, as Excel saves it, and no CSV file: save it as “CSV UTF-8”.")
        encoding = "utf-16" if sample[:2] in (b"\xff\xfe", b"\xfe\xff") else "utf-8-sig"
        self.delimiter = delimiter_of(sample.decode(encoding, errors="ignore"))
        self._text = io.TextIOWrapper(self._raw, encoding, errors="surrogateescape", newline="")

    @property
    def bytes_read(self) -> int:
        return self._raw.tell()

    def close(self) -> None:
        self._text.close()

    def rows(self, *, at_most: int | None = None) -> Iterator[Row]:
        """Yield the rows that are not blank, from the start.

        Raises:
            Unreadable: from some line on; what stands before has been yielded.
            Refused: it begins as UTF-16 and is none.
        """
        self._text.seek(0)
        try:
            yield from islice(_rows(self._text, self.delimiter, self.name), at_most)
        except UnicodeDecodeError:
            raise Refused(f"{self.name} begins as UTF-16 and is none: save it as CSV in UTF-8.") from None


def column_name(heading: str) -> str:
    """Return the form under which two headings are the same: `First Name` and `first_name`."""
    return re.sub(r"[\W_]+", "_", heading.strip().lower()).strip("_")


def is_address(cell: str) -> bool:
    try:
        parse(cell)
    except InvalidAddress:
        return False
    return True


def _rows(text: IO[str], delimiter: str, name: str) -> Iterator[Row]:
    reader = csv.reader(text, delimiter=delimiter, strict=True)
    while True:
        line = reader.line_num + 1
        try:
            cells = next(reader)
        except StopIteration:
            return
        except csv.Error as error:
            if "expected after" not in str(error):
                raise Unreadable(name, line, _why(error)) from None
            yield Row(line=line, cells=[], fault="cannot be read: a closing quote stands inside a cell.")
            continue
        if line == 1 and cells and cells[0].lower() == "sep=" and not any(cells[1:]):
            continue  # How Excel is told the delimiter.
        if any(map(str.strip, cells)):
            yield Row(line=line, cells=cells)


def _why(error: csv.Error) -> str:
    words = str(error)
    if "field limit" in words:
        return f"a cell has more than {csv.field_size_limit()} characters, perhaps behind a quote that is never closed"
    return "a quote is opened and never closed" if "end of data" in words else words


def delimiter_of(sample: str) -> str:
    """Return the delimiter that leaves the most addresses in cells of their own, and then the most columns."""

    def worth(delimiter: str) -> tuple[int, int]:
        rows: list[list[str]] = []
        for cells in csv.reader(io.StringIO(sample, newline=""), delimiter=delimiter):
            if any(cells):
                rows.append(cells)
            if len(rows) == _SAMPLE_ROWS:
                break
        # Blanks around an address do not count, but a tab there would be another file's delimiter.
        addresses = sum("\t" not in cell and is_address(cell) for cells in rows for cell in cells)
        return addresses, mode(map(len, rows)) if rows else 0

    return max(_DELIMITERS, key=worth)
