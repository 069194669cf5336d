"""Makes workbooks for tests: `.xlsx` by the writer of Excel files, `.ods` by hand."""

import io
import zipfile
from collections.abc import Collection, Mapping, Sequence
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


def ods(rows: Rows, *, hidden: Collection[int] = ()) -> bytes:
    """Return a workbook of one sheet, with the empty rows and cells to its edge that LibreOffice writes.

    `hidden` are the lines that a filter hides. A cell may be given as it is in the file.
    """
    filtered = ' table:visibility="filter"'
    content = "".join(
        f"<table:table-row{filtered * (line in hidden)}>{''.join(map(_ods_cell, row))}{_empty(1_000)}</table:table-row>"
        for line, row in enumerate(rows, 1)
    )
    document = (
        '<?xml version="1.0"?><office:document-content office:version="1.3"'
        ' xmlns:office="urn:oasis:names:tc:opendocument:xmlns:office:1.0"'
        ' xmlns:table="urn:oasis:names:tc:opendocument:xmlns:table:1.0"'
        ' xmlns:calcext="urn:org:documentfoundation:names:experimental:calc:xmlns:calcext:1.0"'
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
    if str(cell).startswith("<table:"):
        return str(cell)
    kind = f'float" office:value="{cell}' if isinstance(cell, int | float) else "string"
    return f'<table:table-cell office:value-type="{kind}"><text:p>{escape(str(cell))}</text:p></table:table-cell>'


def _empty(count: int) -> str:
    return f'<table:table-cell table:number-columns-repeated="{count}"/>'


HEADING = ["email", "amount", "reference", "label"]
# What is bad in `misleading_xlsx`, `misleading_ods` and `misleading.xls`, which stores the value of each formula. Above
# these rows are that of “good”, and that of “hidden”, which is.
MISLEADING: Mapping[str, str] = {
    "error": "has in “label” (4) the error #DIV/0!",
    "percent": "has in “amount” (2) the percentage 100%",
    "long": "has in “reference” (3) the number 4.01289E+15 in scientific notation",
    "exponent": "has in “reference” (3) the number 4.01",
    "first": "has in “label” (4) a part of the merged cell “Both”",
    "second": "has in “label” (4) a part of the merged cell “Both”",
    "padded": "has in “reference” (3) the number",
    "scaled": "has in “amount” (2) the number 50",
    "formula": "has in “reference” (3) a formula whose value is not stored",
}


def misleading_xlsx(heading: Sequence[str] = HEADING) -> bytes:
    file = io.BytesIO()
    with xlsxwriter.Workbook(file, {"in_memory": True}) as book:
        codes = ("0.0 %", "0.00E+00", "00000", "#,##0,")
        percentage, exponent, zeros, thousands = (book.add_format({"num_format": code}) for code in codes)
        sheet = book.add_worksheet("People")
        sheet.write_row(0, 0, heading)
        for line, name in enumerate(["good", "hidden", *MISLEADING], 1):
            sheet.write_row(line, 0, [f"{name}@example.com", line, f"r-{line}", "Spring"])
        sheet.set_row(2, None, None, {"hidden": True})
        sheet.write_formula(3, 3, "=1/0", None, "#DIV/0!")
        sheet.write_number(4, 1, 1, percentage)
        sheet.write_number(5, 2, 4012888888881881)
        sheet.write_number(6, 2, 4012, exponent)
        sheet.merge_range(7, 3, 8, 3, "Both")
        sheet.write_number(9, 2, 123, zeros)
        sheet.write_number(10, 1, 50_000, thousands)
        sheet.write_formula(11, 2, "=1+1", None, "")
    return file.getvalue()


def misleading_ods() -> bytes:
    def cell(attributes: str, shows: str = "") -> str:
        return f"<table:table-cell {attributes}><text:p>{shows}</text:p></table:table-cell>"

    error = cell('table:formula="of:=1/0" office:value-type="string" calcext:value-type="error"', "#DIV/0!")
    percentage = cell('office:value-type="percentage" office:value="1"', "100%")
    exponent = cell('office:value-type="float" office:value="4012"', "4.01E+03")
    both = cell('table:number-rows-spanned="2" table:number-columns-spanned="1" office:value-type="string"', "Both")
    rows: list[Sequence[object]] = [
        HEADING,
        *([f"{name}@example.com", line, f"r-{line}", "Spring"] for line, name in enumerate(("good", "hidden"), 1)),
        ["error@example.com", 3, "r-3", error],
        ["percent@example.com", percentage, "r-4"],
        ["long@example.com", 5, 4012888888881881],
        ["exponent@example.com", 6, exponent],
        ["first@example.com", 7, "r-7", both],
        ["second@example.com", 8, "r-8", "<table:covered-table-cell/>"],
        ["padded@example.com", 9, cell('office:value-type="float" office:value="123"', "00123")],
        ["scaled@example.com", cell('office:value-type="float" office:value="50000"', "50"), "r-10"],
        ["formula@example.com", 11, '<table:table-cell table:formula="of:=1+1"/>'],
    ]
    return ods(rows, hidden=[3])
