"""Pasted addresses as mail programs write them: `Ada <ada@example.com>; bob@example.com`, on one line or on several."""

import re

# An address with a name in front, or one alone.
_ENTRY = re.compile(r'(?:"[^"]*"\s*|[^<>@;"]*)<([^\s<>@]+@[^\s<>@]+)>|([^\s,;<>"@]+@[^\s,;<>"@]+)')
_BETWEEN = re.compile(r"[\s,;]*")


def one_a_line(text: str) -> str:
    """Return the text with each address on a line of its own, if it holds nothing but addresses and their names.

    Anything else stays as it is. So do several lines with several addresses each and no names: they may be rows of a
    table, and then the column must be asked for.
    """
    found: list[str] = []
    rows = 0
    lines = [line for line in text.splitlines() if _BETWEEN.fullmatch(line) is None]
    for line in lines:
        addresses, place, is_row = [], _past(line, 0), False
        while place < len(line):
            entry = _ENTRY.match(line, place)
            if entry is None:
                return text
            addresses.append(entry[1] or entry[2])
            is_row = is_row or entry[1] is None
            place = _past(line, entry.end())
        rows += is_row and len(addresses) > 1
        found += addresses
    return text if rows and len(lines) > 1 else "\n".join(found)


def _past(line: str, place: int) -> int:
    """Return where the commas, semicolons and blanks from a place on end."""
    between = _BETWEEN.match(line, place)
    assert between is not None, "it may be empty"
    return between.end()
