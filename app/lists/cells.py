"""The cells of a list: which heading is that of the e-mail addresses, and which cell is plainly one address."""

import re

from app.addresses import Address, parse
from app.errors import InvalidAddress

# Zero-width characters and marks of direction; they come along when an address is copied.
_INVISIBLE = "\u00ad\u200b-\u200f\u202a-\u202e\u2060-\u2064\u2066-\u2069\ufeff"
_AROUND = re.compile(rf"^[\s{_INVISIBLE}]+|[\s{_INVISIBLE}]+$")
_APART = re.compile(rf"[\s_\-\u2010-\u2015{_INVISIBLE}]+")
_LIKE_AN_ADDRESS = re.compile(r"[^\s@]@[^\s@]")

# An address may begin with another mark than these, and hold those. In a list that is nearly always what is left of
# something else: a formula, an apostrophe for text, a bullet, a comment, a delimiter, a lost letter. Whether it
# belongs to the address cannot be told, so such a one is not paid from a list.
_MAY_BEGIN = "_+"
_NOT_WITHIN = ("|", "=", "\ufffd")

# A spreadsheet leaves off a tab or a line end in front.
_BEGINS_A_FORMULA = ("=", "+", "-", "@", "\t", "\r", "\n")

EMAIL = frozenset({"email", "mail", "emailaddress", "mailaddress", "emailadresse", "mailadresse"})


def heading_name(cell: str) -> str:
    """Return the form under which two headings are the same: any case, blanks, hyphens and underscores."""
    return _APART.sub("", cell).casefold()


def is_blank(cell: str) -> bool:
    return not _AROUND.sub("", cell)


def is_like_an_address(cell: str) -> bool:
    return _LIKE_AN_ADDRESS.search(cell) is not None


def address_in(cell: str, *, is_unicode: bool = True) -> Address:
    """Return the one address that a cell holds, blanks and invisible characters around it left off.

    Args:
        is_unicode: whether the list is in UTF-8 or UTF-16; else only plain ASCII can be read for sure.

    Raises:
        InvalidAddress: it holds none, several, or more than an address.
    """
    try:
        address = parse(cell)
    except InvalidAddress:
        if cell.count("@") > 1:
            raise InvalidAddress("must be one e-mail address: it holds several.") from None
        address = parse(_AROUND.sub("", cell))
    text = address.text
    doubtful = "" if text[0].isalnum() or text[0] in _MAY_BEGIN else text[0]
    for mark in _NOT_WITHIN:
        doubtful = mark if mark in text else doubtful
    if doubtful:
        raise InvalidAddress(f"must be an e-mail address: “{doubtful}” may be no part of it.")
    if not (is_unicode or text.isascii()):
        raise InvalidAddress("cannot be read for sure: save the list as CSV in UTF-8.")
    return address


def for_spreadsheet(cell: str) -> str:
    """Return a cell that no spreadsheet takes for a formula: one that begins like it gets an apostrophe in front."""
    return f"'{cell}" if cell.startswith(_BEGINS_A_FORMULA) else cell


def from_spreadsheet(cell: str) -> str:
    """Return a cell without the apostrophe that `for_spreadsheet` has put in front."""
    return cell[1:] if cell.startswith(tuple(f"'{mark}" for mark in _BEGINS_A_FORMULA)) else cell
