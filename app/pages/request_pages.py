"""The pages of `GET /v1/requests`: the calls of an organization's keys, newest first, by their time, then by id."""

from datetime import datetime
from typing import Annotated, NamedTuple

from sqlalchemy import Connection

from app.noun import Id, Noun, says
from app.pages.filters import FAR_BATCHES_MAX, LOOKED_AT_MAX, CursorPosition, Filters, Page
from app.pages.statements import as_row, read_page
from app.request_log.rows import REQUESTS_KEPT_DAYS

_NEWEST_FIRST = "created_at DESC, id DESC"


class RequestRow(NamedTuple):
    """A call that one of the organization's keys made."""

    id: int
    request_id: Annotated[
        str,
        says(
            "Its `X-Request-Id`. An id with an @ is shown as the beginning of its SHA-256, as in the service's own"
            " log.",
            "8f14e45fceea167a5a36dedd4bea2543",
        ),
    ]
    created_at: Annotated[
        datetime, says("When it arrived. ISO 8601 in UTC, six decimals.", "2026-01-31T09:30:00.471006Z")
    ]
    api_key_id: Annotated[Id, says("The id of its key.", 1)]
    method: Annotated[str, says("Its method.", "POST")]
    route: Annotated[
        str | None, says("Its path, with `{id}` for each id; null if there is no such call.", "/v1/points/send")
    ]
    status: Annotated[int, says("The status of the answer.", 201, ge=200, le=599)]
    code: Annotated[str | None, says("The `additional_data.code` of the answer; null if it has none.", None)]
    batch_id: Annotated[Id | None, says("The batch that it sent, read, moved or cancelled; null if none.", 1)]
    ms: Annotated[int, says("How long it took, in milliseconds, with its body and its wait.", 12, ge=0)]


requests = Noun(RequestRow, "request", "requests", schema="Request")


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
        f"SELECT * FROM (SELECT {requests.columns}, row_number() OVER (ORDER BY {_NEWEST_FIRST})",
        f"AS rows_read FROM api_requests WHERE {' AND '.join(scope)} ORDER BY {_NEWEST_FIRST} LIMIT :looked_at_max",
        f") looked_at WHERE rows_read >= :looked_at_max OR ({matches}) ORDER BY {_NEWEST_FIRST} LIMIT :rows",
    ]
    return "\n".join(lines)
