"""The data of `GET /v1/requests`."""

from pydantic import BaseModel

from app.noun import Cursor, Id, Time, says


class Request(BaseModel):
    """A call that one of the organization's keys made."""

    request_id: str = says(
        "Its `X-Request-Id`. An id with an @ is shown as the beginning of its SHA-256, as in the service's own log.",
        "8f14e45fceea167a5a36dedd4bea2543",
    )
    created_at: Time = says("When it arrived. ISO 8601 in UTC, six decimals.", "2026-01-31T09:30:00.471006Z")
    api_key_id: Id = says("The id of its key.", 1)
    method: str = says("Its method.", "POST")
    route: str | None = says("Its path, with `{id}` for each id; null if there is no such call.", "/v1/points/send")
    status: int = says("The status of the answer.", 201, ge=200, le=599)
    code: str | None = says("The `additional_data.code` of the answer; null if it has none.", None)
    batch_id: Id | None = says("The batch that it sent, read, moved or cancelled; null if none.", 1)
    ms: int = says("How long it took, in milliseconds, with its body and its wait.", 12, ge=0)


class RequestList(BaseModel):
    """A page of calls, newest first."""

    requests: list[Request] = says("The calls of this page.")
    next_cursor: Cursor
