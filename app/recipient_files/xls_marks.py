"""The marks of an .xls."""

import os

import xlrd

from app.recipient_files.workbook_marks import ERROR, Marks, kind_of


def read(content: bytes) -> dict[str, Marks]:
    """Return the marks of an .xls. It stores a value for each formula."""
    with open(os.devnull, "w", encoding="utf-8") as nowhere:
        book = xlrd.open_workbook(file_contents=content, formatting_info=True, logfile=nowhere)
    all_marks = {}
    for sheet in book.sheets():
        marks = all_marks[sheet.name] = Marks.none()
        marks.hidden.update(row for row, about in sheet.rowinfo_map.items() if about.hidden)
        for row in range(sheet.nrows):
            for column, kind in enumerate(sheet.row_types(row)):
                if kind == xlrd.XL_CELL_ERROR:
                    marks.cells[row][column] = (ERROR, xlrd.error_text_from_code.get(sheet.cell_value(row, column), ""))
                elif kind == xlrd.XL_CELL_NUMBER:
                    style = book.xf_list[sheet.cell_xf_index(row, column)]
                    shown = kind_of(book.format_map[style.format_key].format_str)
                    if shown is not None:
                        marks.cells[row][column] = (shown, "")
    return all_marks
