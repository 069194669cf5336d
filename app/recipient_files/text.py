"""A list as text: a sheet of a workbook, or UTF-8 with or without a BOM, UTF-16 with a BOM, else Windows-1252."""

import codecs
import io
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from typing import BinaryIO

from app.errors import Refused
from app.recipient_files.workbooks import BEGINNINGS, Sheet, opened_sheet

_MARKS = {codecs.BOM_UTF8: "utf-8-sig", codecs.BOM_UTF16_LE: "utf-16", codecs.BOM_UTF16_BE: "utf-16"}
_UNMARKED = ("utf-8", "cp1252")
_BLOCK_BYTES = 1 << 20


@dataclass(frozen=True, kw_only=True)
class ListText:
    """A list that is open as text, whatever it was.

    `is_unicode` tells whether it is a workbook, or in UTF-8 or UTF-16; in Windows-1252 only ASCII is unambiguous. Of a
    workbook, `sheet` is the one that is read, and `other_sheets` hold addresses too.
    """

    name: str
    raw: BinaryIO
    text: io.TextIOWrapper
    is_unicode: bool
    size_bytes: int
    sheet: Sheet | None = None
    other_sheets: Sequence[Sheet] = ()


@contextmanager
def opened(raw: BinaryIO, name: str, *, sheet: str | None = None) -> Iterator[ListText]:
    """Open a list.

    Args:
        sheet: the name or the number of the sheet of a workbook that the person has chosen.

    Raises:
        SheetUnclear: several sheets of a workbook hold addresses.
        Refused: it cannot be read, can be read only once, or there is no such sheet.
    """
    if not raw.seekable():
        raise Refused(f"{name} can be read only once, but is read twice: save it as a file first.")
    raw.seek(0)
    if raw.read(4).startswith(BEGINNINGS):
        with opened_sheet(raw, name, sheet) as (file, chosen, others):
            yield _list_text(name, file, io.TextIOWrapper(file, "utf-8", newline=""), chosen, others)
        return
    if sheet is not None:
        raise Refused(f"{name} has no sheets: it is not a workbook.")
    yield _list_text(name, raw, _open_text(raw, name))


def _list_text(
    name: str, raw: BinaryIO, text: io.TextIOWrapper, sheet: Sheet | None = None, others: Sequence[Sheet] = ()
) -> ListText:
    return ListText(
        name=name,
        raw=raw,
        text=text,
        is_unicode=text.encoding != "cp1252",
        size_bytes=raw.seek(0, io.SEEK_END),
        sheet=sheet,
        other_sheets=others,
    )


def _open_text(raw: BinaryIO, name: str) -> io.TextIOWrapper:
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
