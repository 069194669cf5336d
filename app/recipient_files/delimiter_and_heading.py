"""The beginning of a list: its delimiter, and the row that names its columns."""

from collections.abc import Collection
from itertools import islice
from typing import IO, NamedTuple

from app.errors import InvalidAddress, Refused
from app.recipient_files.cells import address_in, heading_name, is_like_an_address
from app.recipient_files.rows import SEPARATOR_LINE, Row, Unreadable, rows

_SAMPLE_ROWS = 50
_DELIMITERS = {",": "commas", ";": "semicolons", "\t": "tabs"}


class Beginning(NamedTuple):
    """The first rows, read with one delimiter. `headings` has more than one row only if the heading is repeated."""

    delimiter: str
    sample: list[Row]
    headings: list[Row]
    # Line and column (from 0) of each cell that holds an address.
    addresses: list[tuple[int, int]]


def beginning(text: IO[str], name: str, wanted: Collection[str], delimiter: str | None) -> Beginning:
    """Read the first rows. A heading has a cell with a `wanted` name, and is above every address.

    Args:
        delimiter: what is between the cells, if that is known.

    Raises:
        Refused: the list is empty, cannot be read, or can be read in two ways.
    """
    text.seek(0)
    told = SEPARATOR_LINE.fullmatch(text.readline().rstrip("\r\n"))
    possible = delimiter or (told[1] if told else _DELIMITERS)
    readings = [_read(text, name, one, wanted) for one in possible]
    if not readings[0].sample:
        raise Refused(f"{name} is empty.")
    best = max(readings, key=lambda reading: (len(reading.addresses), bool(reading.headings)))
    if rival := next((other for other in readings if other is not best and _may_be_meant(other, best)), None):
        raise Refused(
            f"{name} may have {_DELIMITERS[best.delimiter]} or {_DELIMITERS[rival.delimiter]} between its cells:"
            " use one of them only, and put a cell that holds it in quotes."
        )
    _require_one_heading(best, name, wanted)
    return best


def _read(text: IO[str], name: str, delimiter: str, wanted: Collection[str]) -> Beginning:
    sample: list[Row] = []
    try:
        sample.extend(islice(rows(text, delimiter, name), _SAMPLE_ROWS))
    except Unreadable:
        if not sample:
            raise
    good = [row for row in sample if row.fault is None]
    addresses = [(row.line, place) for row in good for place, cell in enumerate(row.cells) if _is_address(cell)]
    naming = [row for row in good if _named(row, wanted) and not _holds_address(row)]
    # A later row may hold the word as plain data. It is a heading only if its column holds addresses.
    places = {place for row in good for place, cell in enumerate(row.cells) if is_like_an_address(cell)}
    headings = [row for row in naming if not places.isdisjoint(_named(row, wanted))]
    first_address = next((row.line for row in sample if _holds_address(row)), None)
    if not headings:
        headings = [row for row in naming if first_address is None or row.line < first_address][:1]
    return Beginning(delimiter, sample, headings, addresses)


def _may_be_meant(other: Beginning, best: Beginning) -> bool:
    """Tell whether another reading, which would pay other recipients, may be the right one."""
    as_good = len(other.addresses) == len(best.addresses) and other.addresses != best.addresses
    if other.headings:
        return as_good or [row.cells for row in other.headings] != [row.cells for row in best.headings]
    # A reading with a heading wins, unless the heading holds the other delimiter too.
    return as_good and all(any(other.delimiter in cell for cell in row.cells) for row in best.headings)


def _require_one_heading(reading: Beginning, name: str, wanted: Collection[str]) -> None:
    for first, other in ((reading.headings[0], other) for other in reading.headings[1:]):
        # `ListFile.rows` reports a repeated heading as a bad line.
        if _named(first, wanted) != _named(other, wanted):
            raise Refused(f"Lines {first.line} and {other.line} of {name} both look like its heading: remove one.")
    for first in reading.headings[:1]:
        if any(row.line < first.line and _holds_address(row) for row in reading.sample):
            raise Refused(
                f"Line {first.line} of {name} looks like its heading, but there are addresses above it: put it first."
            )


def _named(row: Row, wanted: Collection[str]) -> list[int]:
    """Return the indexes of the cells with a wanted name."""
    return [place for place, cell in enumerate(row.cells) if heading_name(cell) in wanted]


def _holds_address(row: Row) -> bool:
    return any(map(is_like_an_address, row.cells))


def _is_address(cell: str) -> bool:
    try:
        address_in(cell)
    except InvalidAddress:
        return False
    return True
