"""The encoding of a list: UTF-8 with or without a BOM, UTF-16 with a BOM, else Windows-1252."""

import codecs
import io
from typing import BinaryIO

from app.errors import Refused

# The first bytes of a workbook: a ZIP archive, or the older format.
_WORKBOOKS = (b"PK\x03\x04", b"\xd0\xcf\x11\xe0")
_MARKS = {codecs.BOM_UTF8: "utf-8-sig", codecs.BOM_UTF16_LE: "utf-16", codecs.BOM_UTF16_BE: "utf-16"}
_UNMARKED = ("utf-8", "cp1252")
_BLOCK_BYTES = 1 << 20


def open_text(raw: BinaryIO, name: str) -> io.TextIOWrapper:
    """Open bytes as text, with line ends unchanged. It decodes everything first, so no later line can fail.

    Raises:
        Refused: it is not text, is in none of these encodings, or can be read only once.
    """
    if not raw.seekable():
        raise Refused(f"{name} can be read only once, but is read twice: save it as a file first.")
    raw.seek(0)
    start = raw.read(4)
    if start.startswith(_WORKBOOKS):
        raise Refused(f"{name} is a workbook, not a CSV file: save it as “CSV UTF-8”.")
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
