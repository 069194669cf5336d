"""What the file of a workbook tells of its sheets and `python_calamine` does not: hidden rows, and cells that mislead.

The process that reads workbooks imports it, and what reads the marks of each kind, so they import nothing else of the
service.
"""

import re
from collections import defaultdict
from collections.abc import Callable
from functools import cache
from typing import NamedTuple
from xml.parsers import expat  # A file that declares a document type, and so entities, is refused.

ERROR, FORMULA, PERCENTAGE, SCIENTIFIC, PADDED, SCALED = range(6)

# The first row and column of merged cells, and the last; all are counted from 0.
Range = tuple[tuple[int, int], tuple[int, int]]


class Marks(NamedTuple):
    """The marks of a sheet. Rows and columns are counted from 0.

    `cells` has for each row the kind of its marked cells by column, and what they show if the reader does not tell.
    """

    hidden: set[int]
    cells: dict[int, dict[int, tuple[int, str]]]
    merged: list[Range]

    @classmethod
    def none(cls) -> "Marks":
        return cls(set(), defaultdict(dict), [])


def parser(begin: Callable[[str, dict[str, str]], None]) -> expat.XMLParserType:
    made = expat.ParserCreate()
    made.buffer_text = True
    made.StartElementHandler = begin
    made.StartDoctypeDeclHandler = _refuse
    return made


def _refuse(*_: object) -> None:
    raise ValueError("it declares a document type")


# What a format of numbers shows as it is.
_LITERAL = re.compile(r'"[^"]*"|\\.|\[[^\]]*\]')
_SIGNS = {
    PERCENTAGE: re.compile("%"),
    SCIENTIFIC: re.compile("[Ee][+-]"),
    PADDED: re.compile("^00+(;|$)"),
    SCALED: re.compile("[0#?],+(?![0#?,])"),  # Each comma after the last digit leaves three digits out.
}


@cache
def kind_of(number_format: str) -> int | None:
    """Return how a format shows a number; None: in its own digits, perhaps rounded or with separators."""
    plain = _LITERAL.sub("", number_format)
    found = (kind for kind, sign in _SIGNS.items() if sign.search(plain))
    return next(found, None)
