"""The pages of the platform's lists: organizations, their keys and refills, and users, newest first."""

from sqlalchemy import Connection

from app.api_keys import StoredKey
from app.api_keys import keys as of_keys
from app.organizations import Refill, WholeOrganization, whole
from app.organizations import refills as of_refills
from app.pages.filters import CursorPosition, Filters, Page
from app.pages.statements import as_row, by_id, read_page
from app.users import SELECT_USERS, RegisteredUser, to_user

_NEWEST_FIRST = "created_at DESC, id DESC"
_FILTERS_OF_USERS = {"email_key": "email_key = :email_key", "external_id": "external_id = :external_id"}


def organizations(
    connection: Connection, filters: Filters, *, start: CursorPosition | None, limit: int
) -> Page[WholeOrganization]:
    """Return the organizations of a page, by id."""
    statement = f"""
        SELECT {whole.columns}, row_number() OVER (ORDER BY id DESC) AS rows_read FROM organizations
        {"" if start is None else "WHERE id <= :start_id"} ORDER BY id DESC LIMIT :rows
    """
    return read_page(
        connection, statement, filters, start, limit=limit, to_row=as_row(WholeOrganization), next_start=by_id
    )


def keys(connection: Connection, filters: Filters, *, start: CursorPosition | None, limit: int) -> Page[StoredKey]:
    """Return the keys of a page."""
    statement = f"""
        SELECT {of_keys.columns}, row_number() OVER (ORDER BY id DESC) AS rows_read FROM api_keys
        WHERE organization_id = :organization_id {"" if start is None else "AND id <= :start_id"}
        ORDER BY id DESC LIMIT :rows
    """
    return read_page(connection, statement, filters, start, limit=limit, to_row=as_row(StoredKey), next_start=by_id)


def refills(connection: Connection, filters: Filters, *, start: CursorPosition | None, limit: int) -> Page[Refill]:
    """Return the refills of a page."""
    scope = filters.scope_conditions(moment="created_at")
    if start is not None:
        scope.append("(created_at, id) <= (:start_moment, :start_id)")
    statement = f"""
        SELECT {of_refills.columns}, row_number() OVER (ORDER BY {_NEWEST_FIRST}) AS rows_read FROM refills
        WHERE {" AND ".join(scope)} ORDER BY {_NEWEST_FIRST} LIMIT :rows
    """
    return read_page(connection, statement, filters, start, limit=limit, to_row=as_row(Refill))


def users(
    connection: Connection, filters: Filters, *, start: CursorPosition | None, limit: int
) -> Page[RegisteredUser]:
    """Return the users of a page, each with its balance at this moment."""
    conditions = [condition for name, condition in _FILTERS_OF_USERS.items() if getattr(filters, name) is not None]
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
