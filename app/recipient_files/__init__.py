"""Reading lists of recipients: bytes in, rows out, each with its line and, if it cannot be used, the reason.

`text` opens a list: a sheet of a workbook, by `workbooks` and `workbook_process`, or text, whose encoding it finds.
`rows` reads the rows. `delimiter_and_heading` finds the delimiter and the heading.
`list_file` finds the column of the addresses and the rows that do not fit. `cells` recognizes addresses and headings.
`columns` makes an item from each row, and `recipients` makes the parts and bad lines of a whole list.
`workbook_writer` writes rows as a workbook; `pasted` reads what mail programs write between addresses.
"""

from app.recipient_files.cells import (
    EMAIL,
    address_in,
    for_spreadsheet,
    from_spreadsheet,
    marked_as_text,
    marked_as_text_in_sql,
    trimmed,
    unmarked,
)
from app.recipient_files.list_file import ColumnUnclear, ListFile
from app.recipient_files.rows import Row, Unreadable
from app.recipient_files.text import ListText, opened
from app.recipient_files.workbooks import SheetUnclear

__all__ = [
    "EMAIL",
    "ColumnUnclear",
    "ListFile",
    "ListText",
    "Row",
    "SheetUnclear",
    "Unreadable",
    "address_in",
    "for_spreadsheet",
    "from_spreadsheet",
    "marked_as_text",
    "marked_as_text_in_sql",
    "opened",
    "trimmed",
    "unmarked",
]
