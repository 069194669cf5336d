"""The cells of a list: which heading names the e-mail addresses, and which cell holds exactly one address."""

import re

from app.errors import InvalidAddress
from app.values.addresses import PLAIN, Address, parse

# Zero-width characters and direction marks, often copied along with an address.
_INVISIBLE = "\u00ad\u200b-\u200f\u202a-\u202e\u2060-\u2064\u2066-\u2069\ufeff"
_EDGES = re.compile(rf"^[\s{_INVISIBLE}]+|[\s{_INVISIBLE}]+$")
_SEPARATORS = re.compile(rf"[\s_\-\u2010-\u2015{_INVISIBLE}]+")
_LIKE_AN_ADDRESS = re.compile(r"[^\s@]@[^\s@]")

# An address may legally begin with other marks or contain these. In a list, such a mark is nearly always left over from
# a formula, an apostrophe for text, a bullet, a comment, a delimiter or a lost letter. Nobody knows whether it belongs
# to the address, so the address is not paid.
_MAY_BEGIN, _MUST_NOT_CONTAIN = r"\w+", r"|=\ufffd"
_DOUBTFUL = re.compile(rf"^[^{_MAY_BEGIN}]|[{_MUST_NOT_CONTAIN}]")
# Nearly every address: a single match decides about it.
ORDINARY = re.compile(rf"(?=[{_MAY_BEGIN}][^{_MUST_NOT_CONTAIN}]*\Z){PLAIN.pattern}")

# A text that a spreadsheet would take for a formula, also with apostrophes in front.
_LIKE_A_FORMULA = re.compile(r"'*[=+@\t\r\n-]")

# A spreadsheet ignores a tab or a line end in front.
_BEGINS_A_FORMULA = ("=", "+", "-", "@", "\t", "\r", "\n")

EMAIL = frozenset({"email", "mail", "emailaddress", "mailaddress", "emailadresse", "mailadresse"})


def heading_name(cell: str) -> str:
    """Return the form in which headings are compared: without case, blanks, hyphens and underscores."""
    return _SEPARATORS.sub("", cell).casefold()


def trimmed(cell: str) -> str:
    """Return a cell without the blanks and invisible characters around it."""
    text = cell.strip()
    return text if text.isascii() else _EDGES.sub("", text)


def is_blank(cell: str) -> bool:
    return not trimmed(cell)


def is_like_an_address(cell: str) -> bool:
    return _LIKE_AN_ADDRESS.search(cell) is not None


def address_in(cell: str, *, is_unicode: bool = True) -> Address:
    """Return the only address of a cell, without the blanks and invisible characters around it.

    Args:
        is_unicode: whether the list is in UTF-8 or UTF-16; in other encodings only ASCII is unambiguous.

    Raises:
        InvalidAddress: the cell holds no address, several, or other text too.
    """
    if ORDINARY.match(cell):
        return Address(cell, cell.lower())
    try:
        address = parse(cell)
    except InvalidAddress:
        if cell.count("@") > 1:
            raise InvalidAddress("must be one e-mail address: it holds several.") from None
        address = parse(trimmed(cell))
    if doubtful := _DOUBTFUL.search(address.text):
        raise InvalidAddress(f"must be an e-mail address: “{doubtful[0]}” may not belong to it.")
    if not (is_unicode or address.text.isascii()):
        raise InvalidAddress("may be read wrongly: save the list as CSV in UTF-8.")
    return address


def for_spreadsheet(cell: str) -> str:
    """Return the cell with an apostrophe in front if a spreadsheet would take it for a formula."""
    return f"'{cell}" if cell.startswith(_BEGINS_A_FORMULA) else cell


def from_spreadsheet(cell: str) -> str:
    """Return a cell without the apostrophe that `for_spreadsheet` has put in front."""
    return cell[1:] if cell.startswith(tuple(f"'{mark}" for mark in _BEGINS_A_FORMULA)) else cell


def marked_as_text(cell: str) -> str:
    """Return the cell with an apostrophe in front if a spreadsheet would take it for a formula.

    Unlike what `for_spreadsheet` does, this can always be undone: such cells behind apostrophes get one more.
    """
    return f"'{cell}" if _LIKE_A_FORMULA.match(cell) else cell


def marked_as_text_in_sql(cell: str) -> str:
    """Word in SQL what `marked_as_text` does. All marks sort before the letters, so most cells cost one comparison."""
    mark = _LIKE_A_FORMULA.pattern.replace("'", "''").replace("\\", "\\\\")
    return f"CASE WHEN {cell} < 'A' COLLATE \"C\" AND {cell} ~ E'^{mark}' THEN '''' || {cell} ELSE {cell} END"


def unmarked(cell: str) -> str:
    """Return the cell from which `marked_as_text` has made this cell."""
    return cell[1:] if cell.startswith("'") and _LIKE_A_FORMULA.match(cell) else cell
