"""Writing recipients as CSV that is read back as the same, and rows as a workbook."""

import csv
from collections.abc import Iterable, Sequence
from io import BytesIO, StringIO
from typing import Any

import xlsxwriter

from app.recipient_files.cells import for_spreadsheet, marked_as_text
from app.recipient_files.columns import UNPAID_BATCH, Item


def written(items: Sequence[Item]) -> bytes:
    """Return the list of these recipients. A column is there if any of them has such a value."""
    names = ["email", *(name for name in Item._fields[1:] if any(getattr(item, name) is not None for item in items))]
    return _csv(names, [[getattr(item, name) for name in names] for item in items])


def written_unpaid(items: Sequence[Item], batch_ids: Sequence[int]) -> bytes:
    """Return the list of unpaid recipients, each with its batch: so it differs from the list that was sent.

    It may be opened in a spreadsheet, so no cell begins a formula; a reader undoes that.
    """
    rows = []
    for item, batch_id in zip(items, batch_ids, strict=True):
        reference, label = marked_as_text(item.reference or ""), for_spreadsheet(item.label or "")
        rows.append((for_spreadsheet(item.email), item.amount, reference, label, batch_id))
    return _csv([*Item._fields, UNPAID_BATCH], rows)


def _csv(heading: Sequence[str], rows: Sequence[Sequence[object]]) -> bytes:
    text = StringIO()
    writer = csv.writer(text)
    writer.writerow(heading)
    writer.writerows(rows)
    return text.getvalue().encode()


# Excel's last row is 1,048,576; the rest goes on in further sheets.
_SHEET_ROWS_MAX = 1_000_000
# Excel keeps 15 digits of a number. A longer number, such as an id, is written as a text.
_EXACT_MAX = 10**15
_CELL_LENGTH_MAX = 32_767
_WIDTHS = {"email": 34, "reason": 60, "label": 24, "reference": 24}
_OPTIONS = {
    "constant_memory": True,
    "strings_to_numbers": False,
    "strings_to_urls": False,
    "strings_to_formulas": False,
}


def workbook_of(heading: Sequence[str], rows: Iterable[Sequence[str | int | None]]) -> bytes:
    """Return a workbook of all rows, below the heading."""
    file = BytesIO()
    with xlsxwriter.Workbook(file, _OPTIONS) as book:
        digits, sheet = book.add_format({"num_format": "0"}), _new_sheet(book, heading)
        for number, row in enumerate(rows):
            if number and number % _SHEET_ROWS_MAX == 0:
                sheet = _new_sheet(book, heading)
            place = number % _SHEET_ROWS_MAX + 1
            for column, cell in enumerate(row):
                if isinstance(cell, int) and abs(cell) < _EXACT_MAX:
                    sheet.write_number(place, column, cell, digits)
                elif cell not in (None, ""):
                    sheet.write_string(place, column, str(cell)[:_CELL_LENGTH_MAX])
    return file.getvalue()


def _new_sheet(book: xlsxwriter.Workbook, heading: Sequence[str]) -> Any:
    sheet, bold = book.add_worksheet(), book.add_format({"bold": True})
    for column, title in enumerate(heading):
        sheet.set_column(column, column, _WIDTHS.get(title, 14))
        sheet.write_string(0, column, title[:_CELL_LENGTH_MAX], bold)
    sheet.freeze_panes(1, 0)
    return sheet
