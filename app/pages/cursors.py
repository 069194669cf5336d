"""Cursors: a position in a list as an opaque text, valid for one list of one caller with the same filters.

A cursor contains all it needs, so nothing is stored for it and it never expires. Its digest only prevents mistakes:
a forged cursor begins elsewhere in the caller's own list, since organization and mode come from the key.
"""

import base64
import binascii
import hashlib
import struct
from datetime import UTC, datetime, timedelta

from app.pages.filters import CursorPosition, Filters

_FORMAT = struct.Struct(">qq12s")  # Microseconds since 1970, an id, a digest.
_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
_NO_MOMENT = -(2**63)


def encode(kind: str, filters: Filters, start: CursorPosition) -> str:
    """Return the cursor of a position in a list (`kind` is `batches` or `transactions`) with these filters."""
    moment = _NO_MOMENT if start.moment is None else (start.moment - _EPOCH) // timedelta(microseconds=1)
    digest = _digest(kind, filters, moment, start.id)
    return _to_text(_FORMAT.pack(moment, start.id, digest))


def has_the_form(cursor: str) -> bool:
    """Tell whether a text can be a cursor, of any list."""
    return _unpack(cursor) is not None


def decode(kind: str, filters: Filters, cursor: str) -> CursorPosition | None:
    """Return the position that a cursor names; None when the cursor is not of this list with these filters."""
    fields = _unpack(cursor)
    if fields is None:
        return None
    moment, row_id, digest = fields
    if digest != _digest(kind, filters, moment, row_id) or row_id < 0:
        return None
    try:
        return CursorPosition(None if moment == _NO_MOMENT else _EPOCH + timedelta(microseconds=moment), row_id)
    except OverflowError:
        return None


def _unpack(cursor: str) -> tuple[int, int, bytes] | None:
    try:
        content = base64.b64decode(cursor.encode("ascii") + b"==", altchars=b"-_", validate=True)
        moment, row_id, digest = _FORMAT.unpack(content)
    except (UnicodeEncodeError, binascii.Error, struct.error):
        return None
    # The last character has unused bits. Of texts that differ only in these, only one is the cursor.
    return (moment, row_id, digest) if _to_text(content) == cursor else None


def _to_text(content: bytes) -> str:
    return base64.urlsafe_b64encode(content).rstrip(b"=").decode()


def _digest(kind: str, filters: Filters, moment: int, row_id: int) -> bytes:
    of = (kind, moment, row_id, *(str(value) for value in _values(filters)))
    return hashlib.sha256("\0".join(map(str, of)).encode()).digest()[:12]


def _values(filters: Filters) -> list[object]:
    """Return the filters' values in one spelling: equal times are equal in every zone."""
    values = (getattr(filters, name) for name in Filters.__slots__)
    return [value.astimezone(UTC) if isinstance(value, datetime) else value for value in values]
