"""The calls of the organization's keys, in the key's mode."""

from collections.abc import AsyncIterator
from datetime import datetime

from points_client._async.calling import AsyncCaller
from points_client._async.paging import rows
from points_client.request_results import Request
from points_client.requests import query


class AsyncRequests:
    """`points.requests`: what was called in the last 30 days."""

    def __init__(self, caller: AsyncCaller) -> None:
        self._caller = caller

    def list(
        self,
        *,
        request_id: str | None = None,
        api_key: int | None = None,
        batch: int | None = None,
        status: int | str | None = None,
        created_from: datetime | str | None = None,
        created_to: datetime | str | None = None,
        page_size: int = 100,
    ) -> AsyncIterator[Request]:
        """Yield all calls that match, newest first. `status` is `403`, or `"4xx"` for all of a hundred."""
        asked = query(
            request_id=request_id,
            api_key=api_key,
            batch=batch,
            status=status,
            created_from=created_from,
            created_to=created_to,
            limit=page_size,
        )
        return rows(self._caller, Request, "/v1/requests", "requests", asked)
