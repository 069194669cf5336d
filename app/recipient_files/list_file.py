"""A readable list: which column holds the addresses to pay, and which rows fit the heading."""

import re
from collections.abc import Collection, Iterator, Mapping, Sequence
from io import SEEK_END
from itertools import islice
from typing import NamedTuple

from app.errors import Refused
from app.recipient_files.cells import EMAIL, heading_name, is_blank, is_like_an_address, trimmed
from app.recipient_files.misfits import is_another_heading, is_shifted
from app.recipient_files.rows import Row, beginning, rows
from app.recipient_files.text import ListText

# What a person gives for a column: its heading or number, or in the console its place (from 0).
Column = str | int
_FIGURE = re.compile(r"\s*[+-]?[0-9][0-9.,'\s]*%?\s*")
# The last columns of a file of lines that were left out.
LEFT_OUT = ("line", "reason")
# Cells of a column that are examples for the person who chooses it.
_EXAMPLES = 3


class ColumnUnclear(Refused):
    """The column of the addresses is ambiguous or missing; `choices` are the candidates, by their places (from 0)."""

    def __init__(self, sentence: str, choices: Mapping[int, "Candidate"]) -> None:
        super().__init__(sentence)
        self.choices = choices


class Candidate(NamedTuple):
    """A column that may hold the addresses: its title, and some of its cells."""

    title: str
    examples: list[str]


class ListFile:
    """A readable list: its columns and its rows."""

    def __init__(self, opened: ListText, *, column: Column | None = None, others: Collection[str] = ()) -> None:
        """Read the first rows of a list that is open.

        Args:
            column: what the person has given for the column of the addresses.
            others: headings of further columns. They identify the heading row if a number is given and no heading is a
                spelling of e-mail.

        Raises:
            Refused: the list cannot be read, is empty, or its delimiter or heading is ambiguous.
        """
        self.name, self.is_unicode = opened.name, opened.is_unicode
        self.sheet, self.other_sheets = opened.sheet, opened.other_sheets
        self._column = column
        self._raw, self._text = opened.raw, opened.text
        self.size_bytes = self._raw.seek(0, SEEK_END)
        self._leaves_out_hidden = opened.leaves_out_hidden
        is_heading = isinstance(column, str) and not column.isdecimal()
        delimiter = None if self.sheet is None else ","
        self._beginning = beginning(
            self._text, self.name, {heading_name(str(column))} if is_heading else EMAIL, delimiter
        )
        if column is not None and not is_heading and not self._beginning.headings:
            self._beginning = beginning(self._text, self.name, {*map(heading_name, others), str(column)}, delimiter)
        self._heading = next(iter(self._beginning.headings), None)
        # Without a heading, the first good row gives the number of columns.
        good = [row for row in self._beginning.sample if row.fault is None]
        self._cells = self._heading.cells if self._heading else good[0].cells if good else [""]
        self._below = [
            row.cells for row in self._beginning.sample if row.fault is None and row.line > self._heading_line
        ]
        # A column of figures is one even if nothing stands above it.
        places = enumerate(self._cells)
        self._named = max((at + 1 for at, cell in places if not is_blank(cell) or self._has_figures(at)), default=1)

    @property
    def _heading_line(self) -> int:
        return 0 if self._heading is None else self._heading.line

    @property
    def bytes_read(self) -> int:
        """How many of the `size_bytes` are read: about so many, for they are read in blocks."""
        return self._raw.tell()

    @property
    def is_of_left_out_lines(self) -> bool:
        """Whether it was downloaded from the console, to be mended: then it ends with the columns of `LEFT_OUT`."""
        return self._heading is not None and tuple(self._cells[self._named - 2 : self._named]) == LEFT_OUT

    def heading(self, address: int) -> list[str]:
        """Return the list's own columns; where they have no heading, with names that say which column is paid."""
        if self._heading is None:
            return ["email" if place == address else f"column {place + 1}" for place in range(self._named)]
        own = self._cells[: self._named]
        return own[:-2] if self.is_of_left_out_lines else own

    def places(self, names: Collection[str]) -> list[int]:
        """Return the columns (from 0) whose heading is among these names, compared as `heading_name` does."""
        if self._heading is None:
            return []
        wanted = {heading_name(name) for name in names}
        return [place for place, cell in enumerate(self._cells) if heading_name(cell) in wanted]

    def others(self, column: int) -> list[int]:
        """Return the other columns that hold addresses, judging by the first rows."""
        fitting = {row.line for row in self._beginning.sample if self._named <= len(row.cells) <= len(self._cells)}
        return sorted({place for line, place in self._beginning.addresses if line in fitting} - {column})

    def columns(self) -> list[int]:
        """Return the columns that have a heading, or something below it."""
        return [
            place
            for place in range(self._named)
            if self._examples(place) or not (self._heading is None or is_blank(self._cells[place]))
        ]

    def figures(self) -> list[int]:
        """Return the columns that hold figures alone, judging by the first rows."""
        return list(filter(self._has_figures, range(self._named)))

    def _has_figures(self, place: int) -> bool:
        cells = [cells[place] for cells in self._below if place < len(cells) and any(map(is_like_an_address, cells))]
        return any(map(_FIGURE.fullmatch, cells)) and all(is_blank(cell) or _FIGURE.fullmatch(cell) for cell in cells)

    def title(self, place: int) -> str:
        """Return the name of a column for a person: its heading, if any, and its number."""
        cell = " ".join(self._cells[place].split()) if place < len(self._cells) else ""
        is_word = cell and not any(map(is_like_an_address, self._cells))
        return f"“{cell}” ({place + 1})" if is_word else f"column {place + 1}"

    def listed(self, places: Sequence[int]) -> str:
        """Return the names of columns for a person."""
        titles = [self.title(place) for place in places]
        return ", ".join(titles[:-1]) + f" and {titles[-1]}" if len(titles) > 1 else titles[0]

    def address_column(self) -> int:
        """Return the column of the addresses to pay.

        Raises:
            ColumnUnclear: no column, or several, can be it; or the given column is there twice.
            Refused: there is no such column.
        """
        if self._column is not None:
            return self.column(self._column)
        named = self.places(EMAIL)
        if len(named) == 1:
            return named[0]
        if self._heading is None and self._named == 1 and not self._begins_with_words():
            return 0
        if holding := named or sorted({place for _, place in self._beginning.addresses}):
            raise ColumnUnclear(
                f"{self.listed(holding)} of {self.name} may hold the addresses that are meant.",
                self._candidates(holding),
            )
        raise ColumnUnclear(f"No column of {self.name} holds e-mail addresses.", {})

    def _begins_with_words(self) -> bool:
        """Tell whether a cell above the first address may be a heading. With a dot, it may be a mistyped address."""
        first, _ = min(self._beginning.addresses, default=(0, 0))
        above = [cell for row in self._beginning.sample if row.line < first for cell in row.cells]
        return any(not is_blank(cell) and not {"@", "."}.intersection(cell) for cell in above)

    def rows(self, address: int, *others: int) -> Iterator[Row]:
        """Yield every row except the heading; a row that does not fit the heading has a fault.

        Args:
            address: the column of the addresses; `others` are further columns whose cells are used. Extra blank cells
                are accepted only if no column but the first is used: otherwise a delimiter inside an earlier cell
                may have shifted the columns. If something is above the heading, the heading itself may be shifted.

        Raises:
            Unreadable: the list cannot be read from some line on.
            Refused: a second heading has other columns.
        """
        width, named = len(self._cells), self._named
        heading_line, used = self._heading_line, {address, *others}
        begins = self._beginning.sample[0].line
        may_be_wider = address == 0 and not others and heading_line <= begins
        above = heading_line or min(self._beginning.addresses, default=(begins, 0))[0]
        before = [place for place in self.others(address) if place < address]
        lacking = self._lacking(address)
        for row in rows(self._text, self._beginning.delimiter, self.name):
            count = len(row.cells)
            if (row.doubts or row.is_hidden) and row.line > heading_line and (fault := self._misleads(row, used)):
                yield row._replace(fault=fault)
            elif row.fault is not None:
                yield row
            elif row.line <= heading_line:
                if row.line < heading_line:
                    yield row._replace(fault="is above the heading.")
            elif before and is_shifted(row.cells, before, lacking):
                yield row._replace(fault=f"may be shifted{self._quotes_missing}.")
            elif count == width == named and "@" in row.cells[address]:
                yield row
            elif named <= count and (count <= width or may_be_wider) and all(map(is_blank, row.cells[named:])):
                self._require_no_heading(row, address, above)
                yield row
            else:
                self._require_no_heading(row, address, above)
                yield row._replace(fault=f"{self._misfit(row.cells)}{self._quotes_missing}.")

    def _misleads(self, row: Row, used: Collection[int]) -> str | None:
        """Return why a row of a workbook is not what it shows, or is not to be used; None if it is."""
        if row.is_hidden and self._leaves_out_hidden:
            return "is hidden in the workbook, and left out as you chose."
        doubt = next((place for place in row.doubts if place in used), None)
        return None if doubt is None else f"has in {self.title(doubt)} {row.doubts[doubt]}."

    def _misfit(self, cells: Sequence[str]) -> str:
        count, named = len(cells), self._named
        if self.sheet is not None:  # All rows of a sheet have the same number of cells.
            last = max(place for place, cell in enumerate(cells, 1) if not is_blank(cell))
            return f"has something in column {last}, which has no heading"
        return f"has {count} cell{'' if count == 1 else 's'} for {named} column{'' if named == 1 else 's'}"

    @property
    def _quotes_missing(self) -> str:
        return ": a cell that holds the delimiter must be in quotes" if self.sheet is None else ""

    def _lacking(self, address: int) -> list[int]:
        """Return the other columns in which a cell of the first rows holds no address."""
        rows = [
            row.cells for row in self._beginning.sample if row is not self._heading and len(row.cells) >= self._named
        ]
        places = [place for place in range(self._named) if place != address]
        return [place for place in places if not all(is_like_an_address(cells[place]) for cells in rows)]

    def _require_no_heading(self, row: Row, address: int, above: int) -> None:
        """Refuse a heading with other columns below line `above`: two lists were joined, and their columns differ."""
        names = [heading_name(cell) for cell in self._cells[: self._named]]
        if row.line > above and is_another_heading(row.cells, names, address, has_heading=self._heading is not None):
            raise Refused(
                f"Line {row.line} of {self.name} looks like another heading, with other columns: split the list there."
            )

    def column(self, column: Column) -> int:
        """Return the place of a column that a person has given.

        Raises:
            ColumnUnclear: it is there twice.
            Refused: there is no such column.
        """
        if isinstance(column, int):
            if column < len(self._cells):
                return column
            column = str(column + 1)
        places = self.places([column])
        if not places and column in map(str, range(1, len(self._cells) + 1)):
            return int(column) - 1
        if not places:
            raise Refused(f"{self.name} has no column {column}: its columns are {self.listed(range(self._named))}.")
        if len(places) > 1:
            raise ColumnUnclear(
                f"{self.name} has the column {column} twice: {self.listed(places)}.", self._candidates(places)
            )
        return places[0]

    def _candidates(self, places: Sequence[int]) -> dict[int, Candidate]:
        return {place: Candidate(self.title(place), self._examples(place)) for place in places}

    def _examples(self, place: int) -> list[str]:
        """Return the first cells below the heading that are not blank."""
        below = (cells[place] for cells in self._below if place < len(cells))
        return list(islice((trimmed(cell) for cell in below if not is_blank(cell)), _EXAMPLES))
