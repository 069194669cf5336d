"""The marks of an .ods."""

import re
from typing import IO

from app.recipient_files.workbook_marks import ERROR, FORMULA, PADDED, PERCENTAGE, SCALED, SCIENTIFIC, Marks, parser

_ERROR = re.compile(r"#(N/A|NAME\?|REF!|DIV/0!|VALUE!|NULL!|NUM!)|Err:[0-9]+")
_SIGN = re.compile("(?P<scientific>[0-9][Ee][+-]?[0-9])|^0[0-9]")
_CELLS = ("table:table-cell", "table:covered-table-cell")


class Ods:
    """Reads the sheets of an .ods, by the names that all its writers, and `python_calamine`, use."""

    def __init__(self) -> None:
        self._marks: dict[str, Marks] = {}
        self._sheet = Marks.none()
        self._row = self._column = self._rows = 0
        self._cell: dict[str, str] = {}
        self._text = ""
        self._notes = 0
        self._parser = parser(self._begin)
        self._parser.EndElementHandler = self._end
        self._parser.CharacterDataHandler = self._add

    def read(self, content: IO[bytes]) -> dict[str, Marks]:
        self._parser.ParseFile(content)
        return self._marks

    def _begin(self, name: str, attributes: dict[str, str]) -> None:
        if name == "table:table":
            self._sheet = self._marks[attributes["table:name"]] = Marks.none()
            self._row = 0
        elif name == "table:table-row":
            self._column, self._rows = 0, int(attributes.get("table:number-rows-repeated", "1"))
            if attributes.get("table:visibility") in ("collapse", "filter"):
                self._sheet.hidden.update(range(self._row, self._row + self._rows))
        elif name in _CELLS:
            self._cell, self._text = attributes, ""
        self._notes += name == "office:annotation"

    def _add(self, text: str) -> None:
        if not self._notes:
            self._text += text

    def _end(self, name: str) -> None:
        if name in _CELLS:
            self._end_cell()
        elif name == "table:table-row":
            self._row += self._rows
        self._notes -= name == "office:annotation"

    def _end_cell(self) -> None:
        cell, text = self._cell, self._text.strip()
        columns = int(cell.get("table:number-columns-repeated", "1"))
        wide, high = (int(cell.get(f"table:number-{way}-spanned", "1")) for way in ("columns", "rows"))
        if wide > 1 or high > 1:
            self._sheet.merged.append(((self._row, self._column), (self._row + high - 1, self._column + wide - 1)))
        if (kind := self._kind(cell, text)) is not None:
            for row in range(self._row, self._row + self._rows):
                self._sheet.cells[row].update(dict.fromkeys(range(self._column, self._column + columns), (kind, text)))
        self._column += columns

    def _kind(self, cell: dict[str, str], text: str) -> int | None:
        kind = cell.get("office:value-type")
        if "table:formula" in cell:
            if cell.get("calcext:value-type") == "error" or _ERROR.fullmatch(text):
                return ERROR
            if kind is None or (kind in ("float", "percentage", "currency") and "office:value" not in cell):
                return FORMULA
        if kind == "float" and (sign := _SIGN.search(text)):
            return SCIENTIFIC if sign["scientific"] else PADDED
        shown, value = re.sub("[^0-9]", "", text), cell.get("office:value", "")
        if kind in ("float", "currency") and shown and value.isdecimal() and not shown.startswith(value):
            return SCALED
        return PERCENTAGE if kind == "percentage" else None
