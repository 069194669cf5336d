"""The pages of `GET /v1/webhooks/{id}/deliveries`: the attempts of one webhook, newest first, by id."""

from datetime import datetime
from typing import NamedTuple

from sqlalchemy import Connection

from app.pages.filters import CursorPosition, Filters, Page
from app.pages.statements import as_row, by_id, read_page
from app.webhooks.attempts import DELIVERIES_KEPT_DAYS


class DeliveryRow(NamedTuple):
    """An attempt to deliver an event."""

    id: int
    sequence: int
    event_id: str
    type: str
    attempt: int
    status: int | None
    ms: int
    error: str | None
    created_at: datetime


def page(connection: Connection, filters: Filters, *, start: CursorPosition | None, limit: int) -> Page[DeliveryRow]:
    """Return the attempts of a page; `filters.webhook_id` must be a webhook of the caller's."""
    statement = _STATEMENT if start is None else _STATEMENT_FROM
    return read_page(connection, statement, filters, start, limit=limit, to_row=as_row(DeliveryRow), next_start=by_id)


# Attempts past their time are hidden at once and deleted a little later.
_LINES = """
    SELECT {columns}, row_number() OVER (ORDER BY id DESC) AS rows_read FROM webhook_deliveries
    WHERE webhook_id = :webhook_id {from_start}
      AND created_at >= (SELECT clock_timestamp()) - interval '{days} days'
    ORDER BY id DESC LIMIT :rows
"""
_WORDS = {"columns": ", ".join(DeliveryRow._fields), "days": DELIVERIES_KEPT_DAYS}
_STATEMENT = _LINES.format(from_start="", **_WORDS)
_STATEMENT_FROM = _LINES.format(from_start="AND id <= :start_id", **_WORDS)
