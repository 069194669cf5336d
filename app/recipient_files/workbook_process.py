"""Turns the workbook at standard input into a CSV file for each sheet, in a folder, and prints what the sheets are.

It runs in a process of its own, because a small workbook can be made to need any amount of memory and time, and because
the reader's faults then end nothing but that process. It imports nothing of the service but what reads marks, so it
starts in a moment and holds no secret.

A cell that misleads is written as what it shows, `DOUBT`, and what it holds in words. A row that is hidden begins with
`HIDDEN`.
"""

import csv
import json
import re
import resource
import sys
from collections import defaultdict
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import suppress
from datetime import date, datetime, time, timedelta
from pathlib import Path
from typing import BinaryIO
from zipfile import ZipFile

from python_calamine import (
    CalamineError,
    CalamineSheet,
    CalamineWorkbook,
    PasswordError,
    SheetMetadata,
    SheetTypeEnum,
    SheetVisibleEnum,
)

from app.recipient_files import xls_marks, xlsx_marks
from app.recipient_files.ods_marks import Ods
from app.recipient_files.workbook_marks import ERROR, FORMULA, PADDED, PERCENTAGE, SCALED, SCIENTIFIC, Marks, Range

UNREADABLE, PROTECTED, TOO_LARGE = 2, 3, 4

MEMORY_BYTES_MAX = 3 << 29
CPU_SECONDS_MAX = 60
FILE_BYTES_MAX = 1 << 28
# A part of a workbook, once inflated: looking for its marks would take all of the time.
PART_BYTES_MAX = 3 << 28

# No text has them: they are no characters.
DOUBT, HIDDEN = "\ufdd0", "\ufdd1"

Cell = int | float | str | bool | time | date | datetime | timedelta

_NO_CHARACTERS = re.compile(f"[\0{DOUBT}{HIDDEN}]")
_LINE_END = re.compile(r"\r\n|[\r\n]")
_LIKE_AN_ADDRESS = re.compile(r"[^\s@]@[^\s@]")
# Excel keeps 15 digits of a number; it rounds a longer number.
_EXACT_MAX = 10**15
_DOUBTS = {
    ERROR: "the error {}: correct the formula, or type what is meant",
    FORMULA: "a formula whose value is not stored: open the workbook in a spreadsheet program, and save it there",
    PERCENTAGE: "the percentage {}: type what is meant as a plain number",
    PADDED: "the number {}, which its format shows with zeros in front: format the cell as text, and type it anew",
    SCALED: "the number {}, which its format shows in thousands or the like: give the cell a plain format",
    SCIENTIFIC: "the number {} in scientific notation: format the cell as text, and type all digits anew",
}
_MERGED = "a part of the merged cell “{}”: unmerge it, and fill in each row"
_LONGEST_SHOWN = 60


def main(folder: Path) -> int:
    """Read the workbook; return the exit status."""
    _limit_resources()
    try:
        with CalamineWorkbook.from_filelike(sys.stdin.buffer) as workbook:
            marks = _marks_of(sys.stdin.buffer)
            sheets = [_write(workbook, sheet, marks, folder) for sheet in workbook.sheets_metadata]
    except PasswordError:
        return PROTECTED
    except (MemoryError, OSError):
        return TOO_LARGE
    except (CalamineError, ValueError):
        return UNREADABLE
    json.dump([sheet for sheet in sheets if sheet], sys.stdout)
    return 0


def _limit_resources() -> None:
    limits = {
        resource.RLIMIT_AS: MEMORY_BYTES_MAX,
        resource.RLIMIT_CPU: CPU_SECONDS_MAX,
        resource.RLIMIT_FSIZE: FILE_BYTES_MAX,
        resource.RLIMIT_CORE: 0,
    }
    for kind, most in limits.items():
        with suppress(ValueError, OSError):  # macOS does not limit the memory of a process.
            resource.setrlimit(kind, (most, most))


def _marks_of(file: BinaryIO) -> dict[str, Marks]:
    """Return the marks of all sheets by their names. Any error means that the workbook cannot be read."""
    file.seek(0)
    if file.read(2) != b"PK":
        file.seek(0)
        return xls_marks.read(file.read())
    with ZipFile(file) as parts:
        if any(part.file_size > PART_BYTES_MAX for part in parts.infolist()):
            raise MemoryError
        names = {name.replace("\\", "/").lower(): name for name in parts.namelist()}
        if "content.xml" in names:
            with parts.open(names["content.xml"]) as content:
                return Ods().read(content)
        return xlsx_marks.read(lambda name: parts.open(names[name.lower()]))


def _write(
    workbook: CalamineWorkbook, about: SheetMetadata, all_marks: dict[str, Marks], folder: Path
) -> dict[str, object] | None:
    """Write a sheet into the folder, each row on a line of its own, and return what is to be known of it."""
    if about.typ != SheetTypeEnum.WorkSheet:
        return None
    sheet, marks = workbook.get_sheet_by_name(about.name), all_marks[about.name]
    path, addresses, hidden = folder / f"{workbook.sheet_names.index(about.name)}.csv", 0, 0
    merged = _Merged(sheet.merged_cell_ranges or marks.merged, rows=sheet.end[0] + 1 if sheet.end else 0)
    with path.open("w", encoding="utf-8", newline="") as file:
        writer = csv.writer(file, lineterminator="\n")
        for number, values in enumerate(_rows(sheet)):
            row = [text_of(value) for value in values]
            if number in marks.cells:
                _mark(row, values, marks.cells[number])
            merged.mark(row, number)
            has_address = any(map(_LIKE_AN_ADDRESS.search, row))
            addresses += has_address
            if number in marks.hidden and any(row):
                hidden += has_address
                row[0] = HIDDEN + row[0]
            writer.writerow(row)
    return {
        "name": about.name,
        "path": str(path),
        "is_hidden": about.visible != SheetVisibleEnum.Visible,
        "addresses": addresses,
        "hidden_rows": hidden,
    }


def _rows(sheet: CalamineSheet) -> Iterator[list[Cell]]:
    """Yield all rows from the first on, with the cells from the first column on: then line and column are right."""
    before: list[Cell] = [""] * (sheet.start[1] if sheet.start else 0)
    for row in sheet.iter_rows():
        yield before + row


def _mark(row: list[str], values: Sequence[Cell], marks: Mapping[int, tuple[int, str]]) -> None:
    """Mark the cells of a row that mislead. The style of a cell misleads only where it holds a number."""
    for column, (kind, text) in marks.items():
        if column >= len(row):
            continue
        shown, value = text, values[column]
        if kind in _SHOWN:
            if isinstance(value, bool) or not isinstance(value, int | float):
                continue
            shown = text or _SHOWN[kind].format(value * 100 if kind == PERCENTAGE else value)
        row[column] = f"{_text(shown)}{DOUBT}{_DOUBTS[kind].format(_text(shown))}"


# How a number is shown where the file does not tell.
_SHOWN = {PERCENTAGE: "{:.15g}%", SCIENTIFIC: "{:.2E}", PADDED: "{:.15g}", SCALED: "{:.15g}"}


class _Merged:
    """The merged cells of a sheet. What one shows stands in the first of its cells, and the others are blank."""

    def __init__(self, ranges: Sequence[Range], *, rows: int) -> None:
        self._texts: dict[tuple[int, int], str] = {}
        self._of_row: dict[int, list[Range]] = defaultdict(list)
        for place in ranges:
            for row in range(place[0][0], min(place[1][0] + 1, rows)):
                self._of_row[row].append(place)

    def mark(self, row: list[str], number: int) -> None:
        """Mark the merged cells of a row that is not blank; where only cells side by side are, not the first."""
        is_blank = not any(row)
        for place in self._of_row.get(number, ()):
            (first, left), (last, right) = place
            if number == first and left < len(row):
                self._texts[first, left] = row[left].partition(DOUBT)[0]
            text = self._texts.get((first, left))
            if is_blank or not text:
                continue
            for column in range(left + (first == last), min(right + 1, len(row))):
                row[column] = f"{row[column].partition(DOUBT)[0]}{DOUBT}{_MERGED.format(text[:_LONGEST_SHOWN])}"


def text_of(cell: Cell) -> str:
    """Return a cell as a person sees it, on one line: a number in its digits, a date as 2026-01-31."""
    return next(write(cell) for kind, write in _WRITERS if isinstance(cell, kind))


def _number(number: float) -> str:
    if number.is_integer() and abs(number) < _EXACT_MAX:
        return str(int(number))
    text = f"{number:.5E}" if abs(number) >= _EXACT_MAX else f"{number:.15g}"
    return f"{text}{DOUBT}{_DOUBTS[SCIENTIFIC].format(text)}" if "e" in text.lower() else text


def _moment(moment: datetime) -> str:
    return moment.date().isoformat() if moment.time() == time() else moment.isoformat(" ", "seconds")


def _text(text: str) -> str:
    return _NO_CHARACTERS.sub("\ufffd", _LINE_END.sub("\u2028", text))


# In this order: a bool is an int, and a datetime is a date.
_WRITERS: tuple[tuple[type, Callable[..., str]], ...] = (
    (str, _text),
    (bool, lambda value: str(value).upper()),
    (int, lambda value: _number(float(value))),
    (float, _number),
    (datetime, _moment),
    (date, date.isoformat),
    (time, lambda value: value.isoformat("seconds")),
    (timedelta, str),
)

if __name__ == "__main__":
    sys.exit(main(Path(sys.argv[1])))
