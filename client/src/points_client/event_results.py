"""Events, webhooks and their deliveries."""

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime
from typing import Any


@dataclass(frozen=True, kw_only=True, slots=True)
class Event:
    """Something that happened, in the order of `sequence`: 1, 2, 3 … of an organization and mode, without gaps.

    `id` is stable. `data` is what it is about, as JSON: of `batch.issued`, for one, `data["batch"]` as in the list.
    """

    type: str
    timestamp: datetime
    id: str
    sequence: int
    sandbox: bool
    data: Mapping[str, Any]
    organization: Mapping[str, Any]
    version: str | None = None


@dataclass(frozen=True, kw_only=True, slots=True)
class Webhook:
    """An endpoint: a cursor over the log of events, which stands at `position`.

    `status`: `enabled`, `failing`, `disabled` (then `disabled_reason`: `caller`, `gone`, `failing`). `secret`, for
    `verify_webhook`, is shown when it is made and when it is rotated, and never again.
    """

    id: int
    url: str
    status: str
    position: int = 0
    types: tuple[str, ...] = ()
    description: str | None = None
    disabled_reason: str | None = None
    secret: str | None = None
    created_at: datetime | None = None
    retry_at: datetime | None = None


@dataclass(frozen=True, kw_only=True, slots=True)
class Delivery:
    """One attempt to deliver an event: the `status` that the endpoint answered, after `ms` milliseconds, or an `error`.

    `event` is what the service says of the event that was delivered.
    """

    attempt: int
    event: Any = None
    status: int | None = None
    ms: int | None = None
    error: str | None = None
    created_at: datetime | None = None
