"""The data of answers about webhooks."""

from pydantic import BaseModel

from app.api.openapi.answer_values import Cursor, Id, Null, Time, says, says_one_of
from app.webhooks.webhooks import STATUSES


class Webhook(BaseModel):
    """Where events are sent: a cursor over the log."""

    id: Id = says("The id of the webhook.", 1)
    url: str = says("Where events are sent.", "https://shop.example.com/points")
    types: list[str] = says("The types of events that it takes, in which `*` stands for any part.", ["batch.*"])
    description: str | None = says("Its description; null if it has none.", "The shop")
    status: str = says_one_of(
        STATUSES,
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
