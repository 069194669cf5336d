"""Reading lists of recipients: bytes in, rows out, each with its line and, if it cannot be used, the reason.

`text` finds the encoding, `rows` reads the rows, `delimiter_and_heading` the delimiter and the heading, `list_file` the
column of the addresses and the rows that do not fit, and `cells` recognizes addresses and headings. `columns` makes an
item of each row, and `recipients` the parts and the bad lines of a whole list.
"""

from app.lists.cells import EMAIL, address_in, for_spreadsheet, from_spreadsheet, trimmed
from app.lists.list_file import ColumnUnclear, ListFile
from app.lists.rows import Row, Unreadable

__all__ = [
    "EMAIL",
    "ColumnUnclear",
    "ListFile",
    "Row",
    "Unreadable",
    "address_in",
    "for_spreadsheet",
    "from_spreadsheet",
    "trimmed",
]
