"""The pages of `GET /v1/reversals`: newest first, by the time of acceptance, then by id."""

from sqlalchemy import Connection

from app.pages.filters import CursorPosition, Filters, Page
from app.pages.statements import as_row, read_page
from app.reversals.read import COLUMNS, ReversalRow

_NEWEST_FIRST = "created_at DESC, id DESC"


def page(connection: Connection, filters: Filters, *, start: CursorPosition | None, limit: int) -> Page[ReversalRow]:
    """Return the reversals of a page.

    Args:
        start: where the page begins, the `next` of the previous page; None for the first page.
        limit: the most rows to return. A page may have fewer, even none, and still have a `next`.
    """
    statement = _statement(filters, start)
    return read_page(connection, statement, filters, start, limit=limit, to_row=as_row(ReversalRow))


def _statement(filters: Filters, start: CursorPosition | None) -> str:
    scope = filters.scope_conditions(moment="created_at")
    if start is not None:
        scope.append("(created_at, id) <= (:start_moment, :start_id)")
    if filters.idempotency_key is not None:
        scope.append("idempotency_key = :idempotency_key")
    matches = " AND ".join(filters.batch_conditions()) or "true"
    lines = [
        f"SELECT * FROM (SELECT {COLUMNS}, row_number() OVER (ORDER BY {_NEWEST_FIRST}) AS rows_read",
        f"FROM reversals WHERE {' AND '.join(scope)} ORDER BY {_NEWEST_FIRST} LIMIT :looked_at_max) looked_at",
        f"WHERE rows_read >= :looked_at_max OR ({matches}) ORDER BY {_NEWEST_FIRST} LIMIT :rows",
    ]
    return "\n".join(lines)
