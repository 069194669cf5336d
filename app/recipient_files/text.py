"""A list as text: a sheet of a workbook, UTF-8, UTF-16 with a BOM, else Windows-1252."""

import codecs
import io
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from itertools import islice
from pathlib import Path
from typing import BinaryIO, NamedTuple

import orjson

from app.errors import Refused
from app.recipient_files import workbook_process
from app.values.numbers import counted

# The first bytes of a workbook: a ZIP file, or the older format.
_WORKBOOKS = (b"PK\x03\x04", b"\xd0\xcf\x11\xe0")
# The first byte of the sheets of a workbook as they are kept; no list as text has it.
_KEPT = b"\0"
_KEPT_BYTES_MAX = 1 << 26
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
    hidden_rows: int  # With addresses.

    @property
    def title(self) -> str:
        return f"“{self.name}”{' (hidden)' if self.is_hidden else ''}"


class SheetUnclear(Refused):
    """Several sheets hold addresses; `choices` maps their names to what a person may choose."""

    def __init__(self, name: str, sheets: Sequence[Sheet]) -> None:
        titles = [sheet.title for sheet in sheets]
        super().__init__(f"{name} has addresses in {len(sheets)} sheets: {', '.join(titles[:-1])} and {titles[-1]}.")
        self.choices = {
            sheet.name: f"{sheet.title}: {counted(sheet.addresses, 'line')} with addresses" for sheet in sheets
        }


# What becomes of the rows that are hidden in a workbook.
INCLUDE, LEAVE_OUT = "include", "leave-out"


class HiddenRowsUnclear(Refused):
    """Rows with addresses are hidden in the sheet, and it is not said what becomes of them."""

    def __init__(self, name: str, sheet: Sheet) -> None:
        rows = counted(sheet.addresses, "row")
        are = "is" if sheet.hidden_rows == 1 else "are"
        super().__init__(
            f"{name} has {rows} with addresses in the sheet {sheet.title}: {sheet.hidden_rows} of these rows {are}"
            " hidden in the workbook."
        )


@contextmanager
def opened_sheet(raw: BinaryIO, name: str, wanted: str | None) -> Iterator[tuple[BinaryIO, Sheet, list[Sheet]]]:
    """Open a sheet as CSV in UTF-8; yield its file, the sheet, and the other sheets that hold addresses.

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


def to_keep(content: bytes, name: str) -> bytes:
    """Return a list as it is kept: of a workbook the sheets that hold addresses, as text, so that nothing is hidden.

    They are a line of JSON that names them, with their numbers of lines, and then their rows.

    Raises:
        Refused: it cannot be read as a workbook, or is no list.
    """
    if content.startswith(_KEPT):
        raise Refused(f"{name} begins with a NUL character: it is not a CSV file.")
    if not content.startswith(_WORKBOOKS):
        return content
    with tempfile.TemporaryDirectory() as folder:
        sheets = [sheet for sheet in _sheets(io.BytesIO(content), name, folder) if sheet.addresses]
        if sum(Path(sheet.path).stat().st_size for sheet in sheets) > _KEPT_BYTES_MAX:
            raise Refused(f"{name} {_REASONS[workbook_process.TOO_LARGE]}.")
        rows = [Path(sheet.path).read_bytes() for sheet in sheets]
    named = [(*sheet._replace(path=""), of_sheet.count(b"\n")) for sheet, of_sheet in zip(sheets, rows, strict=True)]
    return b"".join([_KEPT, orjson.dumps(named), b"\n", *rows])


def _kept_sheets(raw: BinaryIO, folder: str) -> list[Sheet]:
    raw.seek(len(_KEPT))
    sheets = []
    for number, (*sheet, lines) in enumerate(orjson.loads(raw.readline())):
        path = Path(folder) / f"{number}.csv"
        path.write_bytes(b"".join(islice(raw, lines)))
        sheets.append(Sheet(*sheet)._replace(path=str(path)))
    return sheets


def _sheets(raw: BinaryIO, name: str, folder: str) -> list[Sheet]:
    raw.seek(0)
    if raw.read(len(_KEPT)) == _KEPT:
        return _kept_sheets(raw, folder)
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
        if sheet := named.get(wanted.strip().casefold()) or numbered.get(wanted):
            return sheet
        raise Refused(f"{name} has no sheet {wanted}: it has {', '.join(sheet.title for sheet in sheets)}.")
    holding = [sheet for sheet in sheets if sheet.addresses]
    if not holding:
        raise Refused(f"No sheet of {name} holds e-mail addresses.")
    if len(holding) > 1:
        raise SheetUnclear(name, holding)
    return holding[0]


_MARKS = {codecs.BOM_UTF8: "utf-8-sig", codecs.BOM_UTF16_LE: "utf-16", codecs.BOM_UTF16_BE: "utf-16"}
_UNMARKED = ("utf-8", "cp1252")
_BLOCK_BYTES = 1 << 20


class ListText(NamedTuple):
    """A list that is open as text, whatever it was.

    Of a workbook, `sheet` is what is read, and `other_sheets` hold addresses too.
    """

    name: str
    raw: BinaryIO
    text: io.TextIOWrapper
    sheet: Sheet | None = None
    other_sheets: Sequence[Sheet] = ()
    leaves_out_hidden: bool = False

    @property
    def is_unicode(self) -> bool:
        """Whether it is a workbook, or in UTF-8 or UTF-16; in Windows-1252 only ASCII is unambiguous."""
        return self.text.encoding != "cp1252"


@contextmanager
def opened(
    raw: BinaryIO, name: str, *, sheet: str | None = None, hidden_rows: str | None = None, is_kept: bool = False
) -> Iterator[ListText]:
    """Open a list; `is_kept`: as `to_keep` has returned it.

    Args:
        sheet: the name or the number of the sheet of a workbook that the person has chosen.
        hidden_rows: `INCLUDE` or `LEAVE_OUT`, if the person has chosen it.

    Raises:
        SheetUnclear: several sheets of a workbook hold addresses.
        HiddenRowsUnclear: rows of the sheet are hidden.
        Refused: it cannot be read, can be read only once, or there is no such sheet.
    """
    if not raw.seekable():
        raise Refused(f"{name} can be read only once, but is read twice: save it as a file first.")
    raw.seek(0)
    if raw.read(4).startswith((*_WORKBOOKS, _KEPT) if is_kept else _WORKBOOKS):
        with opened_sheet(raw, name, sheet) as (file, chosen, others):
            if chosen.hidden_rows and hidden_rows is None:
                raise HiddenRowsUnclear(name, chosen)
            text = io.TextIOWrapper(file, "utf-8", newline="")
            yield ListText(name, file, text, chosen, others, hidden_rows == LEAVE_OUT)
        return
    if sheet is not None:
        raise Refused(f"{name} has no sheets: it is not a workbook.")
    yield ListText(name, raw, open_text(raw, name))


def open_text(raw: BinaryIO, name: str) -> io.TextIOWrapper:
    """Open bytes as text, with line ends unchanged. It decodes everything first, so no later line can fail.

    Raises:
        Refused: it is not text, or is in none of these encodings.
    """
    raw.seek(0)
    start = raw.read(4)
    marked = next((encoding for mark, encoding in _MARKS.items() if start.startswith(mark)), None)
    for encoding in (marked,) if marked else _UNMARKED:
        if _is_in(raw, encoding, name):
            raw.seek(0)
            return io.TextIOWrapper(raw, encoding, newline="")
    begins = (
        f"begins as {marked[:6].upper().strip('-')} and is not" if marked else "is neither in UTF-8 nor in Windows-1252"
    )
    raise Refused(f"{name} {begins}: save it as CSV in UTF-8.")


def _is_in(raw: BinaryIO, encoding: str, name: str) -> bool:
    decoder = codecs.getincrementaldecoder(encoding)()
    raw.seek(0)
    try:
        while block := raw.read(_BLOCK_BYTES):
            if "\0" in decoder.decode(block):
                raise Refused(f"{name} holds NUL characters: it is not a CSV file, or its encoding is not recognized.")
        decoder.decode(b"", final=True)
    except UnicodeDecodeError:
        return False
    return True
