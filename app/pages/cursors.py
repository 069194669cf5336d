"""Cursors: where the next page begins, as an opaque text that fits one list of one caller and no other.

A cursor holds all that it needs, so it stays good for ever and nothing is stored for it. Its digest keeps
it from being used with other filters by mistake. It is no secret: whoever made one up would only begin
somewhere else in a list of their own, because the organization and the mode come from the key.
"""

import base64
import binascii
import hashlib
import struct
from datetime import UTC, datetime, timedelta

from app.pages.filters import Filters, Place

_FORM = struct.Struct(">qq12s")  # Microseconds since 1970, an id, a digest.
_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
_NO_MOMENT = -(2**63)
_LATER_FILTERS = ("idempotency_key", "label", "status")


def encode(kind: str, filters: Filters, place: Place) -> str:
    """Return the cursor of a place in the list of this kind (`batches`, `transactions`) with these filters."""
    moment = _NO_MOMENT if place.moment is None else (place.moment - _EPOCH) // timedelta(microseconds=1)
    digest = _digest(kind, filters, moment, place.id)
    return _written(_FORM.pack(moment, place.id, digest))


def has_the_form(cursor: str) -> bool:
    """Tell whether a text can be a cursor at all, of whatever list."""
    return _unpack(cursor) is not None


def decode(kind: str, filters: Filters, cursor: str) -> Place | None:
    """Return the place that a cursor names; None when it is no cursor of this list with these filters."""
    fields = _unpack(cursor)
    if fields is None:
        return None
    moment, row_id, digest = fields
    if digest != _digest(kind, filters, moment, row_id) or row_id < 0:
        return None
    try:
        return Place(None if moment == _NO_MOMENT else _EPOCH + timedelta(microseconds=moment), row_id)
    except OverflowError:
        return None


def _unpack(cursor: str) -> tuple[int, int, bytes] | None:
    try:
        content = base64.b64decode(cursor.encode("ascii") + b"==", altchars=b"-_", validate=True)
        moment, row_id, digest = _FORM.unpack(content)
    except (UnicodeEncodeError, binascii.Error, struct.error):
        return None
    # Its last character has bits that mean nothing; of the texts that differ only there, one is a cursor.
    return (moment, row_id, digest) if _written(content) == cursor else None


def _written(content: bytes) -> str:
    return base64.urlsafe_b64encode(content).rstrip(b"=").decode()


def _digest(kind: str, filters: Filters, moment: int, row_id: int) -> bytes:
    of = (kind, moment, row_id, *(str(value) for value in _values(filters)))
    return hashlib.sha256("\0".join(map(str, of)).encode()).digest()[:12]


def _values(filters: Filters) -> list[object]:
    """Return what the filters ask for, in one spelling: two times that are equal are equal in every zone.

    A filter that came later counts only where it is asked for: so cursors made before there was one stay good.
    """
    asked = {name: getattr(filters, name) for name in Filters.__slots__}
    later = [f"{name}={asked.pop(name)}" for name in _LATER_FILTERS if asked[name] is not None]
    first = [value for name, value in asked.items() if name not in _LATER_FILTERS]
    return [*(value.astimezone(UTC) if isinstance(value, datetime) else value for value in first), *later]
