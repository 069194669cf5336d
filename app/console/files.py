"""Files to download, as CSV that Excel opens as UTF-8, or as a workbook."""

import csv
import unicodedata
from collections.abc import Iterable, Iterator, Sequence
from io import StringIO
from urllib.parse import quote

from flask import Response

from app.console.slow_work import list_checks
from app.errors import Refused
from app.recipient_files.cells import marked_as_text
from app.recipient_files.writing import workbook_of
from app.values.numbers import points

Row = Sequence[str | int | None]

_WORKBOOK = "application/vnd.openxmlformats-officedocument.spreadsheetml.sheet"
# Writing each 10,000 takes a second of the process's time.
_WORKBOOK_LINES_MAX = 100_000
CSV, XLSX = "csv", "xlsx"
# Without this mark at its beginning, Excel does not take a text for UTF-8.
MARK = "\ufeff"
# What RFC 8187 leaves as it is, beside letters and digits.
_AS_IT_IS = "!#$&+-.^_`|~"


def file(kind: str, name: str, heading: Sequence[str], rows: Iterable[Row], *, lines: int) -> Response:
    """Answer with a file of this kind, of about so many lines; `name` is without its ending.

    Raises:
        Refused: a workbook of so many lines would keep the service from other work for too long.
    """
    if kind == XLSX and lines > _WORKBOOK_LINES_MAX:
        raise Refused(f"A workbook of {points(lines)} lines is too long. Download the file as CSV.")
    return workbook(f"{name}.xlsx", heading, rows) if kind == XLSX else _text(f"{name}.csv", heading, rows)


def _text(name: str, heading: Sequence[str], rows: Iterable[Row]) -> Response:
    def content() -> Iterator[bytes]:
        part = StringIO()
        part.write(MARK)
        writer = csv.writer(part)
        writer.writerow(map(marked_as_text, heading))
        for number, row in enumerate(rows, 1):
            writer.writerow([marked_as_text(cell) if isinstance(cell, str) else cell for cell in row])
            if number % 1_000 == 0:
                yield part.getvalue().encode()
                part.seek(0)
                part.truncate()
        yield part.getvalue().encode()

    return save_as(Response(content(), content_type="text/csv; charset=utf-8"), name)


def workbook(name: str, heading: Sequence[str], rows: Iterable[Row]) -> Response:
    """Answer with a workbook."""
    with list_checks.turn():
        content = workbook_of(heading, rows)
    return save_as(Response(content, content_type=_WORKBOOK), name)


def save_as(response: Response, name: str) -> Response:
    """Have the browser save an answer under a name, in any script. A header holds ASCII only: RFC 6266 tells how."""
    plain = unicodedata.normalize("NFKD", name).encode("ascii", "ignore").decode()
    names = {"filename": plain}
    if plain != name:
        names["filename*"] = f"UTF-8''{quote(name, safe=_AS_IT_IS)}"
    response.headers.set("Content-Disposition", "attachment", **names)
    return response
