"""Turns the workbook at standard input into a CSV file for each sheet, in a folder, and prints what the sheets are.

It runs in a process of its own, because a small workbook can be made to need any amount of memory and time, and because
the reader's faults then end nothing but that process. It imports nothing of the service, so it starts in a moment and
holds no secret.
"""

import csv
import json
import re
import resource
import sys
from collections.abc import Callable, Iterator
from contextlib import suppress
from datetime import date, datetime, time, timedelta
from pathlib import Path

from python_calamine import (
    CalamineError,
    CalamineSheet,
    CalamineWorkbook,
    PasswordError,
    SheetMetadata,
    SheetTypeEnum,
    SheetVisibleEnum,
)

UNREADABLE, PROTECTED, TOO_LARGE = 2, 3, 4

MEMORY_BYTES_MAX = 3 << 29
CPU_SECONDS_MAX = 60
FILE_BYTES_MAX = 1 << 28

Cell = int | float | str | bool | time | date | datetime | timedelta

_LINE_END = re.compile(r"\r\n|[\r\n]")
_LIKE_AN_ADDRESS = re.compile(r"[^\s@]@[^\s@]")
# Excel keeps 15 digits of a number; it rounds a longer number.
_EXACT_MAX = 10**15


def main(folder: Path) -> int:
    """Read the workbook; return the exit status."""
    _limit_resources()
    try:
        with CalamineWorkbook.from_filelike(sys.stdin.buffer) as workbook:
            sheets = [_write(workbook, sheet, folder) for sheet in workbook.sheets_metadata]
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


def _write(workbook: CalamineWorkbook, about: SheetMetadata, folder: Path) -> dict[str, object] | None:
    """Write a sheet into the folder, each row on a line of its own, and return what is to be known of it."""
    if about.typ != SheetTypeEnum.WorkSheet:
        return None
    sheet = workbook.get_sheet_by_name(about.name)
    path, addresses = folder / f"{workbook.sheet_names.index(about.name)}.csv", 0
    with path.open("w", encoding="utf-8", newline="") as file:
        writer = csv.writer(file, lineterminator="\n")
        for row in _rows(sheet):
            addresses += any(map(_LIKE_AN_ADDRESS.search, row))
            writer.writerow(row)
    return {
        "name": about.name,
        "path": str(path),
        "is_hidden": about.visible != SheetVisibleEnum.Visible,
        "addresses": addresses,
    }


def _rows(sheet: CalamineSheet) -> Iterator[list[str]]:
    """Yield all rows from the first on, with the cells from the first column on: then line and column are right."""
    before = [""] * (sheet.start[1] if sheet.start else 0)
    for row in sheet.iter_rows():
        yield before + [text_of(cell) for cell in row]


def text_of(cell: Cell) -> str:
    """Return a cell as a person sees it, on one line: a number in its digits, a date as 2026-01-31."""
    return next(write(cell) for kind, write in _WRITERS if isinstance(cell, kind))


def _number(number: float) -> str:
    if number.is_integer() and abs(number) < _EXACT_MAX:
        return str(int(number))
    return f"{number:.5E}" if abs(number) >= _EXACT_MAX else f"{number:.15g}"


def _moment(moment: datetime) -> str:
    return moment.date().isoformat() if moment.time() == time() else moment.isoformat(" ", "seconds")


def _text(text: str) -> str:
    return _LINE_END.sub("\u2028", text).replace("\0", "\ufffd")


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
