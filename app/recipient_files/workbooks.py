"""Workbooks as lists: `.xlsx`, `.xls`, `.ods`. One sheet is read, as if it had been saved as CSV."""

import shutil
import subprocess
import sys
import tempfile
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import BinaryIO, NamedTuple

import orjson

from app.errors import Refused
from app.recipient_files import workbook_process
from app.values.numbers import counted

# The first bytes of a workbook: a ZIP file, or the older format.
BEGINNINGS = (b"PK\x03\x04", b"\xd0\xcf\x11\xe0")
_SECONDS_MAX = 2 * workbook_process.CPU_SECONDS_MAX
_REASONS = {
    workbook_process.PROTECTED: "is protected by a password: save it without one",
    workbook_process.TOO_LARGE: "is too large to be read as a workbook: save the sheet as CSV in UTF-8",
}


class Sheet(NamedTuple):
    """A sheet of a workbook, where its rows are as CSV, and how many of them hold addresses."""

    name: str
    path: str
    is_hidden: bool
    addresses: int

    @property
    def title(self) -> str:
        return f"“{self.name}”{' (hidden)' if self.is_hidden else ''}"


class SheetUnclear(Refused):
    """More than one sheet holds addresses; `choices` maps their names to what a person is asked."""

    def __init__(self, name: str, sheets: Sequence[Sheet]) -> None:
        titles = [sheet.title for sheet in sheets]
        super().__init__(f"{name} has addresses in {len(sheets)} sheets: {', '.join(titles[:-1])} and {titles[-1]}.")
        self.choices = {
            sheet.name: f"{sheet.title}: {counted(sheet.addresses, 'line')} with addresses" for sheet in sheets
        }


@contextmanager
def opened_sheet(raw: BinaryIO, name: str, wanted: str | None) -> Iterator[tuple[BinaryIO, Sheet, list[Sheet]]]:
    """Open one sheet as CSV in UTF-8; yield its file, the sheet, and the other sheets that hold addresses.

    Args:
        wanted: the name or the number of the sheet that the person has chosen.

    Raises:
        SheetUnclear: several sheets hold addresses, and none is chosen.
        Refused: it cannot be read, or has no such sheet, or none with addresses.
    """
    with tempfile.TemporaryDirectory() as folder:
        sheets = _sheets(raw, name, folder)
        chosen = _chosen(sheets, name, wanted)
        with Path(chosen.path).open("rb") as file:
            yield file, chosen, [sheet for sheet in sheets if sheet.addresses and sheet is not chosen]


def _sheets(raw: BinaryIO, name: str, folder: str) -> list[Sheet]:
    with tempfile.TemporaryFile() as copy:
        raw.seek(0)
        shutil.copyfileobj(raw, copy)
        copy.seek(0)
        try:
            done = subprocess.run(
                # Isolated: the process takes nothing from the environment or the working directory.
                [sys.executable, "-I", workbook_process.__file__, folder],
                stdin=copy,
                stdout=subprocess.PIPE,
                stderr=subprocess.DEVNULL,
                env={},
                timeout=_SECONDS_MAX,
                check=False,
            )
        except subprocess.TimeoutExpired:
            raise Refused(f"{name} {_REASONS[workbook_process.TOO_LARGE]}.") from None
    if done.returncode == 0:
        return [Sheet(**sheet) for sheet in orjson.loads(done.stdout)]
    # A signal ends a process that needs more than its limits.
    status = workbook_process.TOO_LARGE if done.returncode < 0 else done.returncode
    reason = _REASONS.get(status, "cannot be read as a workbook: save it as .xlsx, or the sheet as CSV in UTF-8")
    raise Refused(f"{name} {reason}.")


def _chosen(sheets: Sequence[Sheet], name: str, wanted: str | None) -> Sheet:
    if wanted is not None:
        numbered = {str(number): sheet for number, sheet in enumerate(sheets, 1)}
        named = {sheet.name.strip().casefold(): sheet for sheet in sheets}
        if found := named.get(wanted.strip().casefold()) or numbered.get(wanted):
            return found
        raise Refused(f"{name} has no sheet {wanted}: it has {', '.join(sheet.title for sheet in sheets)}.")
    holding = [sheet for sheet in sheets if sheet.addresses]
    if not holding:
        raise Refused(f"No sheet of {name} holds e-mail addresses.")
    if len(holding) > 1:
        raise SheetUnclear(name, holding)
    return holding[0]
