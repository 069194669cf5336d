"""The pages of `GET /v1/requests`: the calls of an organization's keys, newest first, by their time, then by id."""

from datetime import datetime
from typing import NamedTuple

from sqlalchemy import Connection

from app.pages.filters import FAR_BATCHES_MAX, LOOKED_AT_MAX, CursorPosition, Filters, Page
from app.pages.statements import as_row, read_page
from app.request_log import REQUESTS_KEPT_DAYS

_NEWEST_FIRST = "created_at DESC, id DESC"


class RequestRow(NamedTuple):
    """A call of a key. `route` is None if there is no such call; `batch_id` is the batch that it was about."""

    id: int
    request_id: str
    created_at: datetime
    api_key_id: int
    method: str
    route: str | None
    status: int
    code: str | None
    batch_id: int | None
    ms: int


def page(
    connection: Connection, filters: Filters, *, start: CursorPosition | None, limit: int, is_far: bool = False
) -> Page[RequestRow]:
    """Return the calls of a page.

    Args:
        is_far: look as far back as for a person.
        start: where the page begins, the `next` of the previous page; None for the first page.
        limit: the most rows to return. A page may have fewer, even none, and still have a `next`.
    """
    return read_page(
        connection,
        _statement(filters, start),
        filters,
        start,
        limit=limit,
        to_row=as_row(RequestRow),
        looked_at_max=FAR_BATCHES_MAX if is_far else LOOKED_AT_MAX,
    )


# Calls past their time are hidden at once and deleted a little later.
_KEPT = f"created_at >= (SELECT clock_timestamp()) - interval '{REQUESTS_KEPT_DAYS} days'"


def _statement(filters: Filters, start: CursorPosition | None) -> str:
    scope = [*filters.scope_conditions(moment="created_at"), _KEPT]
    if start is not None:
        scope.append("(created_at, id) <= (:start_moment, :start_id)")
    matches = " AND ".join(filters.request_conditions()) or "true"
    lines = [
        f"SELECT * FROM (SELECT {', '.join(RequestRow._fields)}, row_number() OVER (ORDER BY {_NEWEST_FIRST})",
        f"AS rows_read FROM api_requests WHERE {' AND '.join(scope)} ORDER BY {_NEWEST_FIRST} LIMIT :looked_at_max",
        f") looked_at WHERE rows_read >= :looked_at_max OR ({matches}) ORDER BY {_NEWEST_FIRST} LIMIT :rows",
    ]
    return "\n".join(lines)
