"""Rows that are not what they seem: another heading, and cells that a delimiter has moved."""

from collections.abc import Sequence

from app.recipient_files.cells import EMAIL, heading_name, is_blank, is_like_an_address


def is_shifted(cells: Sequence[str], before: Sequence[int], lacking: Sequence[int]) -> bool:
    """Tell whether a delimiter inside a cell may have moved the cells behind it, and a missing last cell hides it.

    Then a column of addresses before the paid one holds something else, and an address is in a column behind it that
    does not always hold addresses.
    """
    lost = [place for place in before if place < len(cells) and "@" not in cells[place] and not is_blank(cells[place])]
    return bool(lost) and any("@" in cells[place] for place in lacking if lost[0] < place < len(cells))


def is_another_heading(cells: Sequence[str], names: Sequence[str], address: int, *, has_heading: bool) -> bool:
    """Tell whether a row looks like a heading with other columns than `names`."""
    words = [heading_name(cell) for cell in cells if not is_blank(cell)]
    if words == names or any(map(is_like_an_address, cells)):
        return False
    is_full = len(words) > 1 and not any(map(is_blank, cells[: len(words)]))
    in_place = heading_name(cells[address]) if address < len(cells) else ""
    # A cell with a dot may be a mistyped address.
    names_mail = (in_place and not EMAIL.isdisjoint(words)) or ("mail" in in_place and "." not in in_place)
    return bool(names_mail or (has_heading and is_full and len({*names, *EMAIL}.intersection(words)) > 1))
