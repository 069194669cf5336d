"""The lists of the commands: files of the person, workbooks among them."""

from collections.abc import Iterator
from contextlib import contextmanager
from typing import BinaryIO

import click

from app.errors import Refused
from app.recipient_files.text import ListText, SheetUnclear, opened

sheet_option = click.option(
    "--sheet", metavar="NAME", help="The sheet of a workbook: its name or number [default: the one with addresses]."
)


@contextmanager
def opened_list(raw: BinaryIO, name: str, sheet: str | None) -> Iterator[ListText]:
    """Open a list.

    Raises:
        Refused: it cannot be read; or --sheet is needed.
    """
    try:
        with opened(raw, name, sheet=sheet) as text:
            yield text
    except SheetUnclear as error:
        raise Refused(f"{error.sentence} Choose one with --sheet, by name or number.") from None
