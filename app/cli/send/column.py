"""Finding the column of a file that holds the e-mail addresses."""

from collections.abc import Sequence
from dataclasses import dataclass

from app.cli.csv_file import CsvFile, Row, column_name, is_address
from app.errors import Refused

_SAMPLE_ROWS = 50
_NAMES = frozenset(
    ("email", "e_mail", "mail", "email_address", "e_mail_address", "emailaddress", "mail_address", "recipient")
)


@dataclass(frozen=True, kw_only=True)
class Column:
    """Where the addresses stand: `place` counts from 0; `heading` is what a person would call it."""

    place: int
    heading: str
    has_heading: bool


def find_column(file: CsvFile, wanted: str | None) -> Column:
    """Find the column by the name or number `wanted`, else by its heading, else by the addresses in it.

    Raises:
        Refused: there is none, or it might be one or the other.
    """
    sample = list(file.rows(at_most=_SAMPLE_ROWS))
    if not sample:
        raise Refused(f"{file.name} is empty.")
    first = sample[0].cells
    place = _wanted(first, wanted, file.name) if wanted is not None else _likely(sample, file.name)
    above = first[place].strip() if place < len(first) else ""
    has_headings = _has_headings(first) and not _may_be_a_bad_address(above)
    if wanted is not None and above and column_name(above) == column_name(wanted):
        has_headings = True
    return Column(place=place, heading=above if has_headings else f"column {place + 1}", has_heading=has_headings)


def _has_headings(first: Sequence[str]) -> bool:
    """Tell whether a first line names columns. One word alone that does not say mail may as well be a bad line."""
    if any("@" in cell for cell in first):
        return False
    return len(first) > 1 or any("mail" in column_name(cell) or column_name(cell) in _NAMES for cell in first)


def _may_be_a_bad_address(cell: str) -> bool:
    """Tell whether what stands above the addresses may be one that has lost its @, or all of itself."""
    return not cell or ("." in cell and "mail" not in column_name(cell))


def _wanted(first: Sequence[str], wanted: str, name: str) -> int:
    headings = [column_name(cell) for cell in first]
    if column_name(wanted) in headings:
        return headings.index(column_name(wanted))
    if wanted in map(str, range(1, len(first) + 1)):
        return int(wanted) - 1
    raise Refused(f"{name} has no column {wanted}: its columns are {_listed(first, range(len(first)))}.")


def _likely(sample: Sequence[Row], name: str) -> int:
    first = sample[0].cells
    if _has_headings(first):
        named = [place for place, cell in enumerate(first) if column_name(cell) in _NAMES]
        named = named or [place for place, cell in enumerate(first) if "mail" in column_name(cell)]
        if len(named) == 1:
            return named[0]
    holding = sorted({place for row in sample for place, cell in enumerate(row.cells) if is_address(cell)})
    if len(holding) == 1:
        return holding[0]
    if not holding and len(first) == 1:
        return 0
    if not holding:
        raise Refused(f"No column of {name} holds e-mail addresses. If one does, name it: --column NAME.")
    raise Refused(f"Of {name}, {_listed(first, holding)} hold e-mail addresses: say which one with --column.")


def _listed(first: Sequence[str], places: Sequence[int]) -> str:
    names = [
        f"“{first[place].strip()}” ({place + 1})" if _has_headings(first) and place < len(first) else str(place + 1)
        for place in places
    ]
    return ", ".join(names[:-1]) + f" and {names[-1]}" if len(names) > 1 else names[0]
