"""The data of answers about events."""

from typing import Annotated, Any

from pydantic import BaseModel, Field

from app.events.log import PLATFORM_TYPES, TYPES
from app.noun import Id, Null, Time, says, says_one_of

BATCH_IN_EVENT = {
    "batch": {
        "batch_id": 1,
        "status": "issued",
        "final": True,
        "refusal": None,
        "label": None,
        "metadata": None,
        "idempotency_key": None,
        "api_key_id": 1,
        "sender": None,
        "approval": None,
        "counts": {"recipients": 2, "debited": 2, "credited": 1, "held": 1, "unpaid": 0, "reversed": 0},
        "created_at": "2026-01-31T09:30:00.471006Z",
        "send_at": None,
        "issued_at": "2026-01-31T09:30:00.482913Z",
        "amount": 100,
        "current_balance": 900,
    }
}


class EventOrganization(BaseModel):
    """The organization of an event."""

    id: Id = says("The id of the organization.", 1)


EventTime = Annotated[Time, says("When it happened. ISO 8601 in UTC, six decimals.", "2026-01-31T09:30:00.482913Z")]
EventId = Annotated[str, Field(pattern=r"^evt_[1-9]\d*$")]
LastSequence = Annotated[
    int,
    says(
        "Every event up to this sequence was looked at: use it as `after` of the next call. Without `types` it is the"
        " sequence of the last event here; in a log without events it is 0.",
        4,
        ge=0,
    ),
]


class Event(BaseModel):
    """One thing that happened. An event never changes."""

    type: str = says_one_of(TYPES, "What happened.", "batch.issued")
    timestamp: EventTime
    id: EventId = says("The id of the event, the same in the log and in webhooks.", "evt_7")
    sequence: Id = says("Its place in the log: 1, 2, 3 … without a gap, for each organization and mode.", 4)
    sandbox: bool = says("It is in the log of the sandbox.", False)
    version: str = says("The version of this format.", "1.0")
    organization: EventOrganization = says("The organization of the event.")
    data: dict[str, Any] = says(
        "What changed, as it was then: `batch` (as in the list of batches), `reversal` (as in the list of reversals),"
        " `organization`, `key` (a new one with its bounds) or `webhook`. A claim has `user`, `transactions` (up to 100"
        " ids), `count`, `amount` and `more`, a path that lists all transactions of the user. A limit that a key has"
        " reached has `day`, `used` and `asked`. There are no addresses. Data that cannot be shown as JSON is replaced"
        " by `error`, a sentence.",
        BATCH_IN_EVENT,
    )


class EventList(BaseModel):
    """The next events, oldest first."""

    events: list[Event] = says("The events after `after`.")
    last_sequence: LastSequence


class PlatformEvent(BaseModel):
    """One thing that happened to a user or an organization. An event never changes."""

    type: str = says_one_of(PLATFORM_TYPES, "What happened.", "user.registered")
    timestamp: EventTime
    id: EventId = says("The id of the event.", "evt_9")
    sequence: Id = says("Its place in the log of the platform: 1, 2, 3 … without a gap.", 4)
    sandbox: bool = says("Always false: the platform has one log.", False)
    version: str = says("The version of this format.", "1.0")
    organization: Null = says("Always null: the log is the platform's. `data` has what the event is about.", None)
    data: dict[str, Any] = says(
        "What it is about. `user` has its `id` alone, with `fields`, the names of those that changed. `organization` is"
        " as it was then, with the live balance, or with that of the sandbox if `sandbox` is true; a refill also has"
        " `amount` and `reference`. There are no addresses and no names of users.",
        {"user": {"id": 7}},
    )


class PlatformEventList(BaseModel):
    """The next events, oldest first."""

    events: list[PlatformEvent] = says("The events after `after`.")
    last_sequence: LastSequence
