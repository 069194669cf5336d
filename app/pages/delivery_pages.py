"""The pages of `GET /v1/webhooks/{id}/deliveries`: the attempts of one webhook, newest first, by id."""

from sqlalchemy import Connection

from app.pages.filters import CursorPosition, Filters, Page
from app.pages.statements import as_row, by_id, read_page
from app.webhooks.attempts import DELIVERIES_KEPT_DAYS
from app.webhooks.webhook import Delivery, deliveries


def page(connection: Connection, filters: Filters, *, start: CursorPosition | None, limit: int) -> Page[Delivery]:
    """Return the attempts of a page; `filters.webhook_id` must be a webhook of the caller's."""
    # Attempts past their time are hidden at once and deleted a little later.
    statement = f"""
        SELECT {deliveries.columns}, row_number() OVER (ORDER BY id DESC) AS rows_read FROM webhook_deliveries
        WHERE webhook_id = :webhook_id {"" if start is None else "AND id <= :start_id"}
          AND created_at >= (SELECT clock_timestamp()) - interval '{DELIVERIES_KEPT_DAYS} days'
        ORDER BY id DESC LIMIT :rows
    """
    return read_page(connection, statement, filters, start, limit=limit, to_row=as_row(Delivery), next_start=by_id)
