"""The pages of an organization's keys of both modes, revoked ones included: newest first, by id."""

from sqlalchemy import Connection

from app.api_keys import STORED, StoredKey
from app.pages.filters import CursorPosition, Filters, Page
from app.pages.statements import as_row, by_id, read_page


def page(connection: Connection, filters: Filters, *, start: CursorPosition | None, limit: int) -> Page[StoredKey]:
    """Return the keys of a page."""

    statement = f"""
        SELECT {STORED}, row_number() OVER (ORDER BY id DESC) AS rows_read FROM api_keys
        WHERE organization_id = :organization_id {"" if start is None else "AND id <= :start_id"}
        ORDER BY id DESC LIMIT :rows
    """
    return read_page(connection, statement, filters, start, limit=limit, to_row=as_row(StoredKey), next_start=by_id)
