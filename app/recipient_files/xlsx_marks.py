"""The marks of an .xlsx."""

from collections.abc import Callable
from functools import cache
from typing import IO

from app.recipient_files.workbook_marks import ERROR, FORMULA, Marks, kind_of, parser


def read(open_part: Callable[[str], IO[bytes]]) -> dict[str, Marks]:
    """Return the marks of the sheets by their names; `open_part` opens a part of the file."""
    paths: dict[str, str] = {}
    sheets: dict[str, str] = {}

    def relationship(_: str, attributes: dict[str, str]) -> None:
        if "Id" in attributes:
            target = attributes["Target"].removeprefix("/")
            paths[attributes["Id"]] = target if target.startswith("xl/") else f"xl/{target}"

    def sheet(name: str, attributes: dict[str, str]) -> None:
        if name.rpartition(":")[2] == "sheet":
            [number] = [value for key, value in attributes.items() if key.endswith(":id")]
            sheets[attributes["name"]] = paths[number]

    for part, begin in {"xl/_rels/workbook.xml.rels": relationship, "xl/workbook.xml": sheet}.items():
        with open_part(part) as content:
            parser(begin).ParseFile(content)
    kinds = _kinds_of_styles(open_part)
    marks = {}
    for name, path in sheets.items():
        if "/worksheets/" in path.lower():
            with open_part(path) as content:
                marks[name] = _XlsxSheet(kinds).read(content)
    return marks


def _kinds_of_styles(open_part: Callable[[str], IO[bytes]]) -> list[int | None]:
    """Return of each style of cells whether it shows a number as a percentage, or in scientific notation."""
    kinds: list[int | None] = []
    own: dict[str, str] = {}
    is_of_cells = False

    def begin(name: str, attributes: dict[str, str]) -> None:
        nonlocal is_of_cells
        local = name.rpartition(":")[2]
        if local == "numFmt":
            own[attributes["numFmtId"]] = attributes["formatCode"]
        elif local == "xf" and is_of_cells:
            number = attributes.get("numFmtId", "0")
            kinds.append(kind_of(own.get(number) or _BUILT_IN.get(number, "")))
        elif local.startswith("cell"):
            is_of_cells = local == "cellXfs"

    try:
        with open_part("xl/styles.xml") as content:
            parser(begin).ParseFile(content)
    except KeyError:  # It has no styles.
        return []
    return kinds


_BUILT_IN = {"9": "0%", "10": "0.00%", "11": "0.00E+00", "48": "##0.0E+0"}


@cache
def _column(letters: str) -> int:
    number = 0
    for letter in letters.upper():
        number = number * 26 + ord(letter) - 64
    return number - 1


class _XlsxSheet:
    """Reads a sheet of an .xlsx. The text of a cell is looked at only where it may say that the cell misleads."""

    def __init__(self, kinds: list[int | None]) -> None:
        self._kinds, self._marks = kinds, Marks.none()
        self._row = self._column = -1
        self._cell: dict[str, str] | None = None
        self._has_formula = self._has_value = False
        self._text = ""
        self._parser = parser(self._begin)

    def read(self, content: IO[bytes]) -> Marks:
        self._parser.ParseFile(content)
        self._end_cell()
        return self._marks

    def _begin(self, name: str, attributes: dict[str, str]) -> None:
        self._parser.CharacterDataHandler = None
        local = name.rpartition(":")[2]
        if local == "c":
            self._end_cell()
            place = attributes.get("r")
            self._column = _column(place.rstrip("0123456789")) if place else self._column + 1
            self._cell, self._has_formula, self._has_value, self._text = attributes, False, False, ""
        elif local == "v":
            self._has_value = True
            if self._cell is not None and (self._has_formula or self._cell.get("t") == "e"):
                self._parser.CharacterDataHandler = self._add
        elif local == "f":
            self._has_formula = True
        elif local == "row":
            self._end_cell()
            self._row = int(attributes["r"]) - 1 if "r" in attributes else self._row + 1
            self._column = -1
            if attributes.get("hidden") in ("1", "true"):
                self._marks.hidden.add(self._row)

    def _add(self, text: str) -> None:
        self._text += text

    def _end_cell(self) -> None:
        cell, self._cell = self._cell, None
        if cell is None:
            return
        kind, text = cell.get("t"), self._text.strip()
        if kind == "e":
            mark: tuple[int, str] | None = (ERROR, text)
        elif self._has_formula and not text and not (kind == "str" and self._has_value):
            mark = (FORMULA, "")
        else:
            style = int(cell.get("s", "0"))
            shown = self._kinds[style] if style < len(self._kinds) else None
            mark = None if shown is None else (shown, "")
        if mark is not None:
            self._marks.cells[self._row][self._column] = mark
