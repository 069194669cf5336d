"""The pages of an organization's refills in one mode: newest first, by the time, then by id."""

from sqlalchemy import Connection

from app.organizations import REFILL, Refill
from app.pages.filters import CursorPosition, Filters, Page
from app.pages.statements import as_row, read_page

_NEWEST_FIRST = "created_at DESC, id DESC"


def page(connection: Connection, filters: Filters, *, start: CursorPosition | None, limit: int) -> Page[Refill]:
    """Return the refills of a page."""

    scope = filters.scope_conditions(moment="created_at")
    if start is not None:
        scope.append("(created_at, id) <= (:start_moment, :start_id)")
    statement = f"""
        SELECT {REFILL}, row_number() OVER (ORDER BY {_NEWEST_FIRST}) AS rows_read FROM refills
        WHERE {" AND ".join(scope)} ORDER BY {_NEWEST_FIRST} LIMIT :rows
    """
    return read_page(connection, statement, filters, start, limit=limit, to_row=as_row(Refill))
