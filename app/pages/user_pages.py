"""The pages of `GET /v1/platform/users`: newest first, by id."""

from sqlalchemy import Connection

from app.pages.filters import CursorPosition, Filters, Page
from app.pages.statements import by_id, read_page
from app.users import SELECT_USERS, RegisteredUser, to_user

_FILTERS = {"email_key": "email_key = :email_key", "external_id": "external_id = :external_id"}


def page(connection: Connection, filters: Filters, *, start: CursorPosition | None, limit: int) -> Page[RegisteredUser]:
    """Return the users of a page, each with its balance at this moment."""
    conditions = [condition for name, condition in _FILTERS.items() if getattr(filters, name) is not None]
    # Of an address or an external id there is one user at most: with an order, PostgreSQL might read all of them.
    order = "" if conditions else " ORDER BY id DESC LIMIT :rows"
    if start is not None:
        conditions.append("id <= :start_id")
    statement = SELECT_USERS.format(
        condition=" AND ".join(conditions or ["true"]) + order,
        more=", row_number() OVER (ORDER BY f.id DESC) AS rows_read",
    )

    statement = f"{statement} ORDER BY f.id DESC"
    return read_page(connection, statement, filters, start, limit=limit, to_row=to_user, next_start=by_id)
