"""The data of answers about reversals, events and webhooks, as models that only describe them (see `answers`)."""

from typing import Annotated, Any, Literal

from pydantic import BaseModel, Field

from app.api.openapi.answers import BATCH_IN_EVENT, Cursor, Id, Null, Points, Time, says, says_one_of
from app.errors import BalanceTooLarge, BatchNotIssued, OrganizationDisabled
from app.events.log import TYPES
from app.reversals.read import QUEUED, STATUSES
from app.webhooks.webhooks import STATUSES as STATUSES_OF_WEBHOOKS


class ReversedTransaction(BaseModel):
    """What a reversal took from one transaction."""

    id: Id = says("The id of the transaction.", 131_072)
    email: str = says("The address as it was sent, trimmed.", "ada@example.com")
    amount: Points = says("The amount of the transaction.", 50)
    reversed: Points = says("Points that this reversal took.", 50)
    code: str | None = says_one_of(
        ("not_debited", "already_reversed", "more_than_left"),
        "Why nothing could be taken, as a stable word; null if points were taken.",
        None,
    )


class ReverseResult(BaseModel):
    """Points taken back, in the order of the request, or of the batch."""

    reversal_id: Id = says("The id of the reversal: `GET /v1/reversals/{id}` reads it.", 2)
    transactions: list[ReversedTransaction] = says("One per transaction asked for, in order.")
    amount: Points = says("The sum of the points taken.", 100)
    current_balance: Points = says("The balance right after this reversal.", 1_000)


class QueuedReversal(BaseModel):
    """A reversal that is accepted and will be done exactly once; read it at `Location`."""

    reversal_id: Id = says("The id of the reversal.", 2)
    status: str = says_one_of((QUEUED,), "It waits for a worker.", "queued")


class _ReversalHead(BaseModel):
    reversal_id: Id = says("The id of the reversal.", 2)
    status: str = says_one_of(STATUSES, "Refused: nothing was taken, and `refusal` says why.", "done")
    final: bool = says("Its status will not change. Rely on this, as more statuses may be added.", True)
    refusal: str | None = says_one_of(
        (OrganizationDisabled.code, BatchNotIssued.code, BalanceTooLarge.code),
        "Why it was refused, as a stable word; null unless it was refused.",
        None,
    )
    reason: str = says("The reason that it was sent with.", "The wrong list")
    batch_id: Id | None = says("The batch to take back; null if the request named transactions.", 1)
    idempotency_key: str | None = says(
        "The `Idempotency-Key` that it was sent with; null if none, and once it is no longer kept.", None
    )
    api_key_id: Id | None = says("The id of the key that sent it.", 1)
    created_at: Time = says("When it was accepted. ISO 8601 in UTC, six decimals.", "2026-01-31T09:40:00.471006Z")
    done_at: Time | None = says(
        "When it was done, ISO 8601 in UTC, six decimals; null until then.", "2026-01-31T09:40:00.482913Z"
    )


_Taken = Annotated[Points | None, says("The sum of the points taken; null until done.", 100)]
_BalanceThen = Annotated[Points | None, says("The balance right after it; null until done.", 1_000)]


class ListedReversal(_ReversalHead):
    """A reversal as it is now, without its transactions."""

    amount: _Taken
    current_balance: _BalanceThen


class Reversal(_ReversalHead):
    """A reversal as it is now."""

    transactions: list[ReversedTransaction] | None = says("One per transaction asked for, in order; null until done.")
    amount: _Taken
    current_balance: _BalanceThen


class ReversalList(BaseModel):
    """A page of reversals, newest first."""

    reversals: list[ListedReversal] = says("The reversals of this page.")
    next_cursor: Cursor


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


class ReverseVerdict(BaseModel):
    """Whether a reversal would take any points back now."""

    validated: bool = says("True: it would; with `atomic`, all that was asked for.", True)
    error: str | None = says("Why not, as a sentence; null when it is possible.", None)


class Webhook(BaseModel):
    """Where events are sent: a cursor over the log."""

    id: Id = says("The id of the webhook.", 1)
    url: str = says("Where events are sent.", "https://shop.example.com/points")
    types: list[str] = says("The types of events that it takes, in which `*` stands for any part.", ["batch.*"])
    description: str | None = says("Its description; null if it has none.", "The shop")
    status: str = says_one_of(
        STATUSES_OF_WEBHOOKS,
        "Failing: the last attempt failed, and another follows. Disabled: nothing is sent.",
        "enabled",
    )
    disabled_reason: str | None = says_one_of(
        ("caller", "gone", "failing"),
        "Why it is disabled: by a call, by a 410 of the receiver, or after five days of failures. Null if it is not.",
        None,
    )
    position: int = says("The sequence of the last event that it has passed.", 4, ge=0)
    failures: int = says("How many attempts to deliver its next event have failed.", 0, ge=0)
    failing_since: Time | None = says("Since when every attempt has failed; null unless the last one failed.", None)
    retry_at: Time | None = says("When the next attempt is due; null if it waits for an event.", None)
    old_secret_until: Time | None = says(
        "Until when the secret before the last rotation also signs; null if there is none.", None
    )
    created_at: Time = says("When it was made. ISO 8601 in UTC, six decimals.", "2026-01-31T09:00:00.000000Z")


class NewSecret(Webhook):
    """A webhook with its new secret, which is shown only in this answer."""

    secret: str = says(
        "For verifying signatures. It is shown once: store it now.",
        "whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSwMfKQ9r8GKYo=",
    )


class WebhookList(BaseModel):
    """All webhooks, oldest first, on one page."""

    webhooks: list[Webhook] = says("The webhooks.")
    next_cursor: Null = says("Always null: there is no other page.", None)


class DeliveredEvent(BaseModel):
    """The event that was sent."""

    id: str = says("The id of the event, as in `webhook-id`.", "evt_5")
    sequence: int = says("Its sequence.", 5, ge=1)
    type: str = says("Its type.", "ping")


class Delivery(BaseModel):
    """One attempt to deliver an event."""

    id: Id = says("The id of the attempt.", 1)
    event: DeliveredEvent = says("The event that was sent.")
    attempt: int = says("The number of this attempt for the event, from 1.", 1, ge=1)
    delivered: bool = says("The receiver answered with a 2xx in time.", True)
    status: int | None = says("The HTTP status of the answer; null without one.", 200)
    ms: int = says("How long it took, in milliseconds.", 12, ge=0)
    error: str | None = says(
        "Why it failed, as a stable word: `refused`, `redirected`, `timeout`, `not_connected`,"
        " `tls_failed`, `connection_lost`, `broken_answer`, `address_refused`, `name_not_found`, `https_required`,"
        " `not_renderable` (the event cannot be shown as JSON), `internal_error` (the service's own fault)."
        " Null if it did not fail. More words may be added.",
        None,
    )
    created_at: Time = says("When it ended. ISO 8601 in UTC, six decimals.", "2026-01-31T09:30:00.492913Z")


class DeliveryList(BaseModel):
    """A page of attempts, newest first."""

    deliveries: list[Delivery] = says("The attempts of this page.")
    next_cursor: Cursor


class Health(BaseModel):
    """The process answers."""

    status: Literal["ok"] = says("Always `ok`.", "ok")


class Readiness(BaseModel):
    """PostgreSQL answers; `redis` says whether Redis does."""

    status: Literal["ready"] = says("Always `ready`; otherwise the answer is 503.", "ready")
    postgresql: Literal["ok"] = says("Always `ok`; while PostgreSQL is away, the answer is 503.", "ok")
    redis: str = says_one_of(("ok", "away"), "Sends go on while it is away, and take up to 3 s more.", "ok")
