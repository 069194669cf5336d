"""Makes workbooks for tests: `.xlsx` by the writer of Excel files, `.ods` by hand."""

import io
import zipfile
from collections.abc import Mapping, Sequence
from html import escape

import xlsxwriter

Rows = Sequence[Sequence[object]]


def xlsx(sheets: Mapping[str, Rows], *, hidden: str | None = None) -> bytes:
    """Return a workbook of these sheets; blank cells are None."""
    file = io.BytesIO()
    plain = {"strings_to_formulas": False, "strings_to_urls": False, "strings_to_numbers": False}
    with xlsxwriter.Workbook(file, {"in_memory": True, "default_date_format": "dd.mm.yyyy", **plain}) as book:
        for name, rows in sheets.items():
            sheet = book.add_worksheet(name)
            if name == hidden:
                sheet.hide()
            for line, row in enumerate(rows):
                sheet.write_row(line, 0, row)
    return file.getvalue()


def ods(rows: Rows) -> bytes:
    """Return a workbook of one sheet, with the empty rows and cells to its edge that LibreOffice writes."""
    content = "".join(
        f"<table:table-row>{''.join(map(_ods_cell, row))}{_empty(1_000)}</table:table-row>" for row in rows
    )
    document = (
        '<?xml version="1.0"?><office:document-content office:version="1.3"'
        ' xmlns:office="urn:oasis:names:tc:opendocument:xmlns:office:1.0"'
        ' xmlns:table="urn:oasis:names:tc:opendocument:xmlns:table:1.0"'
        ' xmlns:text="urn:oasis:names:tc:opendocument:xmlns:text:1.0"><office:body><office:spreadsheet>'
        f'<table:table table:name="People">{content}'
        f'<table:table-row table:number-rows-repeated="1048000">{_empty(1_024)}</table:table-row></table:table>'
        "</office:spreadsheet></office:body></office:document-content>"
    )
    file = io.BytesIO()
    with zipfile.ZipFile(file, "w") as parts:
        parts.writestr("mimetype", "application/vnd.oasis.opendocument.spreadsheet")
        parts.writestr("META-INF/manifest.xml", "<manifest/>")
        parts.writestr("content.xml", document)
    return file.getvalue()


def _ods_cell(cell: object) -> str:
    if cell is None:
        return _empty(1)
    kind = f'float" office:value="{cell}' if isinstance(cell, int | float) else "string"
    return f'<table:table-cell office:value-type="{kind}"><text:p>{escape(str(cell))}</text:p></table:table-cell>'


def _empty(count: int) -> str:
    return f'<table:table-cell table:number-columns-repeated="{count}"/>'
