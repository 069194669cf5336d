"""Workbooks to download."""

from collections.abc import Iterable, Iterator, Sequence

from flask import Response

from app.console.slow_work import list_checks
from app.recipient_files.workbook_writer import workbook_of

Row = Sequence[str | int | None]

_WORKBOOK = "application/vnd.openxmlformats-officedocument.spreadsheetml.sheet"
_BLOCK_BYTES = 1 << 16


def workbook(name: str, heading: Sequence[str], rows: Iterable[Row]) -> Response:
    """Answer with a workbook."""
    with list_checks.turn():
        file = workbook_of(heading, rows)

    def content() -> Iterator[bytes]:
        with file:
            yield from iter(lambda: file.read(_BLOCK_BYTES), b"")

    response = Response(content(), content_type=_WORKBOOK)
    response.headers.set("Content-Disposition", "attachment", filename=name)
    return response
