"""What was found in a list, as a file: read page by page while it is written, up to a limit."""

from collections.abc import Callable, Iterator
from typing import Any

from flask import Response

from app.batches import payloads
from app.console import files
from app.console.slow_work import searches
from app.pages import batch_pages, transaction_pages
from app.pages.filters import CursorPosition, Filters, Page, Row
from app.pages.parameters import LIMIT_MAX
from app.postgres.database import transaction
from app.values.timestamps import timestamp

# A file has no more rows than a spreadsheet shows, and its reader waits for them.
ROWS_MAX = 1_000_000

_OF_TRANSACTIONS = (
    *("email", "reference", "label", "amount", "state", "reversed", "transaction_id", "batch_id", "issued_at"),
    "sender",
)
_OF_BATCHES = ("batch_id", "created_at", "issued_at", "status", "label", "sender", "recipients", "debited", "points")


def of_transactions(filters: Filters) -> Response:
    """Answer with the transactions that match."""

    def rows() -> Iterator[tuple[Any, ...]]:
        for found in _pages(transaction_pages.page, filters):
            shown = payloads.transaction_payloads(found)
            for (batch, _), body in zip(found, shown, strict=True):
                yield (
                    *(body["email"], body["reference"] or ""),
                    *(body["label"] or "", body["amount"], body["state"], body["reversed"]),
                    *(body["id"], batch.id, body["created_at"], _name(batch.sender)),
                )

    return files.file(files.CSV, "transactions", _OF_TRANSACTIONS, rows(), lines=ROWS_MAX)


def of_batches(filters: Filters) -> Response:
    """Answer with the batches that match."""

    def rows() -> Iterator[tuple[Any, ...]]:
        for found in _pages(batch_pages.page, filters):
            for batch in found:
                yield (
                    *(batch.id, timestamp(batch.created_at), batch.issued_at and timestamp(batch.issued_at)),
                    *(batch.status, batch.label or "", _name(batch.sender)),
                    *(batch.recipient_count, batch.debited_count, batch.debited_amount),
                )

    return files.file(files.CSV, "batches", _OF_BATCHES, rows(), lines=ROWS_MAX)


def _pages(page: Callable[..., Page[Row]], filters: Filters) -> Iterator[list[Row]]:
    start: CursorPosition | None = None
    written = 0
    while written < ROWS_MAX:
        # One transaction for each page, so that a slow reader holds no connection.
        with searches.turn(), transaction() as connection:
            found = page(connection, filters, start=start, limit=LIMIT_MAX, is_far=True)
        yield list(found.rows)
        written, start = written + len(found.rows), found.next
        if start is None:
            return


def _name(sender: Any) -> str:
    return "" if sender is None else f"{sender['first_name']} {sender['last_name']}".strip()
