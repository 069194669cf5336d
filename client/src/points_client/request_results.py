"""What the service answers about the calls of keys."""

from dataclasses import dataclass
from datetime import datetime


@dataclass(frozen=True, kw_only=True, slots=True)
class Request:
    """A call that one of the organization's keys made, as it was answered.

    `route` is its path with `{id}` for each id; None: there is no such call. `code` is that of the answer, and
    `batch_id` the batch that it sent, read, moved or cancelled. `ms` is how long it took.
    """

    request_id: str
    created_at: datetime
    api_key_id: int
    method: str
    status: int
    ms: int
    route: str | None = None
    code: str | None = None
    batch_id: int | None = None
