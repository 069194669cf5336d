"""The pages of `GET /v1/platform/organizations`: newest first, by id."""

from typing import Any

from sqlalchemy import Connection

from app.organizations import WHOLE, WholeOrganization
from app.pages.filters import CursorPosition, Filters, Page
from app.pages.statements import read_page


def page(
    connection: Connection, filters: Filters, *, start: CursorPosition | None, limit: int
) -> Page[WholeOrganization]:
    """Return the organizations of a page, by id."""

    def next_start(row: Any) -> CursorPosition:
        return CursorPosition(None, row.id)

    statement = f"""
        SELECT {WHOLE}, row_number() OVER (ORDER BY id DESC) AS rows_read FROM organizations
        {"" if start is None else "WHERE id <= :start_id"} ORDER BY id DESC LIMIT :rows
    """
    return read_page(connection, statement, filters, start, limit=limit, to_row=_organization, next_start=next_start)


def _organization(row: Any) -> WholeOrganization:
    return WholeOrganization(**{name: getattr(row, name) for name in WholeOrganization.__slots__})
