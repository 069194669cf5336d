"""A call that lists: the page that its query asks for."""

from collections.abc import Callable
from typing import Any

from flask import Response
from sqlalchemy import Connection

from app.api import envelope
from app.api.requests.query import query
from app.api_keys import Caller
from app.pages.filters import Page, Row
from app.pages.queries import next_cursor, parse_page_request
from app.postgres.database import snapshot


def page_answer(
    kind: str,
    who: Caller | None,
    read_page: Callable[..., Page[Row]],
    payload: Callable[[Row], dict[str, Any]],
    *,
    require: Callable[[Connection], object] | None = None,
    **of: Any,
) -> Response:
    """Answer 200 with a page of a list.

    Args:
        kind, who, of: as `parse_page_request` takes them.
        payload: what callers see of a row.
        require: fails if there is nothing of which the list could be; an empty list would hide a wrong id.

    Raises:
        InvalidRequest: with every fault of the query.
    """
    asked = parse_page_request(kind, query(), who, **of)
    with snapshot() as connection:
        if require is not None:
            require(connection)
        page = read_page(connection, asked.filters, start=asked.start, limit=asked.limit)
    return envelope.success({kind: list(map(payload, page.rows)), "next_cursor": next_cursor(kind, asked, page)})
