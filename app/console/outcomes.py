"""The outcome of a list or a batch as a file: a line for each recipient, and for each bad line of a list."""

from collections.abc import Iterable, Iterator, Sequence
from typing import Any

from flask import Response

from app.batches import payloads
from app.batches import read as batches
from app.batches.read import ISSUED, BatchRow
from app.console import files
from app.console.files import save_as
from app.postgres.database import transaction
from app.uploads import parts as upload_parts
from app.uploads import uploads
from app.uploads.again import NewList
from app.uploads.uploads import UploadRow

_HEADING = (
    "line",
    "email",
    "reference",
    "label",
    "amount",
    "state",
    "reversed",
    "transaction_id",
    "batch_id",
    "reason",
)
_Row = tuple[Any, ...]
_REASONS = {
    batches.UNPAID: "the balance was too low",
    batches.HELD: "waits for an account with this address",
    batches.QUEUED: "not issued yet",
    batches.SCHEDULED: "not issued yet",
    batches.AWAITING_APPROVAL: "awaits an approval",
    batches.CANCELLED: "the batch was cancelled",
    batches.REJECTED: "the batch was rejected",
    batches.REFUSED: "the organization may not issue",
}


def of_batch(batch: BatchRow, kind: str) -> Response:
    """Answer with the outcome of one batch; `line` is the recipient's place in it, from 1."""

    def rows() -> Iterator[_Row]:
        with transaction() as connection:
            transactions = batches.transactions_of(connection, batch.id, organization_id=batch.organization_id)
        yield from _issued(batch, range(1, len(transactions) + 1), transactions)

    return files.file(kind, f"batch-{batch.id}", _HEADING, rows(), lines=batch.recipient_count)


def of_list(upload: UploadRow, batch_rows: Sequence[BatchRow], kind: str) -> Response:
    """Answer with the outcome of each line of a list, in the order of the list.

    Once the lines are no longer kept, it has what their batches have: each transaction, without its line.
    """

    def rows() -> Iterator[_Row]:
        with transaction() as connection:
            bad = iter(uploads.bad_lines_of(connection, upload.id))
        next_bad = next(bad, None)
        for row in _of_parts(upload, batch_rows):
            while next_bad is not None and next_bad["line"] < row[0]:
                yield _bad(next_bad)
                next_bad = next(bad, None)
            yield row
        while next_bad is not None:
            yield _bad(next_bad)
            next_bad = next(bad, None)

    lines = sum(batch.recipient_count for batch in batch_rows) + (upload.findings or {}).get("bad", 0)
    return files.file(kind, f"{upload.name.removesuffix('.csv')}.result", _HEADING, rows(), lines=lines)


def of_new_list(new: NewList) -> Response:
    """Answer with a list that can be uploaded, such as that of the unpaid."""
    marked = files.MARK.encode() + new.content
    return save_as(Response(marked, content_type="text/csv; charset=utf-8"), f"{new.name.removesuffix('.csv')}.csv")


def _of_parts(upload: UploadRow, batch_rows: Sequence[BatchRow]) -> Iterator[_Row]:
    for number, batch in enumerate(batch_rows, 1):
        with transaction() as connection:  # One for each part, so that a slow reader holds no connection.
            part = upload_parts.find(connection, upload.id, number)
            transactions = (
                batches.transactions_of(connection, batch.id, organization_id=batch.organization_id)
                if batch.status == ISSUED
                else []
            )
        if batch.status == ISSUED:
            yield from _issued(batch, [""] * len(transactions) if part is None else part.lines, transactions)
            continue
        for line, item in zip(part.lines, part.items, strict=True) if part else ():
            amount, label = item.amount or upload.amount, item.label or upload.label
            yield (
                *(line, item.email, item.reference or ""),
                *(label or "", amount, batch.status, 0, "", batch.id, _REASONS[batch.status]),
            )


def _issued(
    batch: BatchRow, lines: Iterable[int | str], transactions: Sequence[batches.TransactionRow]
) -> Iterator[_Row]:
    shown = payloads.transaction_payloads((batch, row) for row in transactions)
    for line, body in zip(lines, shown, strict=True):
        yield (
            *(line, body["email"], body["reference"] or ""),
            *(body["label"] or "", body["amount"], body["state"], body["reversed"], body["id"]),
            *(batch.id, _REASONS.get(body["state"], "")),
        )


def _bad(line: dict[str, Any]) -> _Row:
    return (line["line"], line["email"], "", "", "", "left out", "", "", "", line["reason"])
