"""The pages of `GET /v1/platform/organizations`: newest first, by id."""

from sqlalchemy import Connection

from app.organizations import WHOLE, WholeOrganization
from app.pages.filters import CursorPosition, Filters, Page
from app.pages.statements import as_row, by_id, read_page


def page(
    connection: Connection, filters: Filters, *, start: CursorPosition | None, limit: int
) -> Page[WholeOrganization]:
    """Return the organizations of a page, by id."""

    statement = f"""
        SELECT {WHOLE}, row_number() OVER (ORDER BY id DESC) AS rows_read FROM organizations
        {"" if start is None else "WHERE id <= :start_id"} ORDER BY id DESC LIMIT :rows
    """
    return read_page(
        connection, statement, filters, start, limit=limit, to_row=as_row(WholeOrganization), next_start=by_id
    )
