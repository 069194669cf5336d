"""Lists as people have them: bytes in, rows out, each with its line and, where it cannot be used, a reason.

`text` finds the encoding, `rows` reads the rows, `beginning` finds the delimiter and the heading, `list_file` the
column that is meant and the rows that do not fit. What an address and a heading are, `cells` says.
"""

from app.lists.cells import EMAIL, address_in, for_spreadsheet, from_spreadsheet
from app.lists.list_file import ListFile
from app.lists.rows import Row, Unreadable

__all__ = ["EMAIL", "ListFile", "Row", "Unreadable", "address_in", "for_spreadsheet", "from_spreadsheet"]
