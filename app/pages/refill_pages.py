"""The pages of an organization's refills in one mode: newest first, by the time, then by id."""

from typing import Any

from sqlalchemy import Connection

from app.organizations import REFILL, Refill
from app.pages.filters import CursorPosition, Filters, Page
from app.pages.statements import read_page

_NEWEST_FIRST = "created_at DESC, id DESC"


def page(connection: Connection, filters: Filters, *, start: CursorPosition | None, limit: int) -> Page[Refill]:
    """Return the refills of a page."""

    def next_start(row: Any) -> CursorPosition:
        return CursorPosition(row.created_at, row.id)

    scope = filters.scope_conditions(moment="created_at")
    if start is not None:
        scope.append("(created_at, id) <= (:start_moment, :start_id)")
    statement = f"""
        SELECT {REFILL}, row_number() OVER (ORDER BY {_NEWEST_FIRST}) AS rows_read FROM refills
        WHERE {" AND ".join(scope)} ORDER BY {_NEWEST_FIRST} LIMIT :rows
    """
    return read_page(connection, statement, filters, start, limit=limit, to_row=_refill, next_start=next_start)


def _refill(row: Any) -> Refill:
    return Refill._make(row[: len(Refill._fields)])
