"""Files to download, as CSV that Excel opens as UTF-8, or as a workbook; and the outcome of each line of a list."""

import csv
import unicodedata
from collections.abc import Callable, Iterable, Iterator, Sequence
from heapq import merge
from io import StringIO
from operator import itemgetter
from typing import Any
from urllib.parse import quote

from flask import Response
from sqlalchemy import Connection

from app.batches import payloads
from app.batches.batch import AWAITING_APPROVAL, CANCELLED, ISSUED, QUEUED, REFUSED, REJECTED, SCHEDULED, Batch
from app.batches.recipients import recipients_of
from app.batches.transaction import HELD, UNPAID, transactions_of
from app.console.blueprints import LIVE, SANDBOX
from app.console.slow_work import list_checks
from app.errors import Refused
from app.postgres.database import single_statement, snapshot
from app.recipient_files.cells import marked_as_text
from app.recipient_files.writing import workbook_of
from app.uploads import parts as upload_parts
from app.uploads import uploads
from app.uploads.sent_before import NewList
from app.uploads.uploads import UploadRow
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


_HEADING = (
    *("line", "email", "reference", "label", "amount"),
    *("state", "reversed", "transaction_id", "batch_id", "reason", "mode"),
)
_Row = tuple[Any, ...]
_REASONS = {
    UNPAID: "the balance was too low, or the user was erased before",
    HELD: "waits for an account with this address",
    QUEUED: "not issued yet",
    SCHEDULED: "not issued yet",
    AWAITING_APPROVAL: "awaits an approval",
    CANCELLED: "the batch was cancelled",
    REJECTED: "the batch was rejected",
    REFUSED: "the organization may not issue",
}


def of_batch(batch: Batch, kind: str) -> Response:
    """Answer with the outcome of a batch, before its issue too; `line` is the recipient's place in it, from 1."""
    rows = _of_part(batch, lambda _: range(1, batch.recipient_count + 1))
    return file(kind, f"batch-{batch.id}-{_mode(batch)}", _HEADING, rows, lines=batch.recipient_count)


def of_list(upload: UploadRow, batch_rows: Sequence[Batch], kind: str) -> Response:
    """Answer with the outcome of each line of a list, in the order of the list.

    Once the lines are no longer kept, it has what their batches have: each transaction, without its line.
    """

    def rows() -> Iterator[_Row]:
        with single_statement() as connection:
            lines = uploads.bad_lines_of(connection, upload.id)
        empty = ("",) * 3
        bad = ((of["line"], of["email"], *empty, "left out", *empty, of["reason"], _mode(upload)) for of in lines)
        yield from merge(_of_parts(upload, batch_rows), bad, key=itemgetter(0))  # By line.

    lines = sum(batch.recipient_count for batch in batch_rows) + (upload.findings or {}).get("bad", 0)
    return file(kind, f"{upload.name.removesuffix('.csv')}.result-{_mode(upload)}", _HEADING, rows(), lines=lines)


def of_new_list(new: NewList) -> Response:
    """Answer with a list that can be uploaded, such as that of the unpaid."""
    marked = MARK.encode() + new.content
    return save_as(Response(marked, content_type="text/csv; charset=utf-8"), f"{new.name.removesuffix('.csv')}.csv")


def _of_parts(upload: UploadRow, batch_rows: Sequence[Batch]) -> Iterator[_Row]:
    for number, batch in enumerate(batch_rows, 1):

        def lines(connection: Connection, number: int = number, batch: Batch = batch) -> Sequence[int | str]:
            part = upload_parts.find(connection, upload.id, number)
            return [""] * batch.recipient_count if part is None else part.lines

        yield from _of_part(batch, lines)


def _of_part(batch: Batch, lines_of: Callable[[Connection], Iterable[int | str]]) -> Iterator[_Row]:
    of, is_issued = {"organization_id": batch.organization_id}, batch.status == ISSUED
    with snapshot() as connection:  # One for each part, so that a slow reader holds no connection.
        lines = lines_of(connection)
        transactions = transactions_of(connection, batch.id, **of) if is_issued else []
        recipients = [] if is_issued else recipients_of(connection, batch.id, **of, at_most=batch.recipient_count)
    if not is_issued:
        for line, (email, amount, label, reference) in zip(lines, recipients, strict=True):
            told = (batch.status, 0, "", batch.id, _REASONS[batch.status], _mode(batch))
            yield (line, email, reference or "", label or "", amount, *told)
        return
    bodies = payloads.transaction_payloads((batch, row) for row in transactions)
    for line, body in zip(lines, bodies, strict=True):
        yield (
            *(line, body["email"], body["reference"] or ""),
            *(body["label"] or "", body["amount"], body["state"], body["reversed"], body["id"]),
            *(batch.id, _REASONS.get(body["state"], ""), _mode(batch)),
        )


def _mode(of: Batch | UploadRow) -> str:
    return SANDBOX if of.sandbox else LIVE
