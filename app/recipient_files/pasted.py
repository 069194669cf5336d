"""Pasted addresses."""

import re

# An address, alone or with a name in front.
_ENTRY = re.compile(r'(?:"[^"]*"\s*|[^<>@;"]*)<([^\s<>@]+@[^\s<>@]+)>|([^\s,;<>"@]+@[^\s,;<>"@]+)')
_BETWEEN = re.compile(r"[\s,;]*")


def one_a_line(text: str) -> str:
    """Return the text with each address on a line of its own, if it holds nothing but addresses and their names.

    Anything else stays as it is. Where every cell is an address there are no columns, also on several lines.
    """
    all_addresses: list[str] = []
    lines = [line for line in text.splitlines() if _BETWEEN.fullmatch(line) is None]
    for line in lines:
        place = _past(line, 0)
        while place < len(line):
            entry = _ENTRY.match(line, place)
            if entry is None:
                return text
            all_addresses.append(entry[1] or entry[2])
            place = _past(line, entry.end())
    return "\n".join(all_addresses)


def _past(line: str, place: int) -> int:
    """Return where the commas, semicolons and blanks from a place on end."""
    between = _BETWEEN.match(line, place)
    assert between is not None, "it may be empty"
    return between.end()
