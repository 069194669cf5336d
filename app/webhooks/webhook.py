"""A webhook, a cursor over the log of events, and the attempts to deliver them: what is said of their fields."""

from collections.abc import Sequence
from datetime import datetime
from typing import Annotated, Any, ClassVar, NamedTuple, Protocol

from sqlalchemy import Connection

from app.errors import LimitReached, PointsError
from app.event import Event, read_on
from app.events import event_types
from app.events.event_types import GLOB, PATTERNS, types_like
from app.fields.field import Field, FieldFault, Schema, kind
from app.fields.kinds import Text
from app.fields.names import KnownNames
from app.noun import Noun
from app.noun_fields import Id, Part, Shown, says, says_one_of
from app.scope import Scope
from app.settings import Settings
from app.webhooks.allowed_receivers import URL_LENGTH_MAX, ReceiverRefused, parse, resolve

WEBHOOKS_MAX = 10
# The most secrets that sign beside the newest: each is a signature in a header of 1 kB.
PREVIOUS_SECRETS_MAX = 20
TYPES_MAX = 50
ENABLED, FAILING, DISABLED = STATUSES = ("enabled", "failing", "disabled")
BY_CALLER, GONE, TOO_LONG_FAILING = REASONS = ("caller", "gone", "failing")
# Time limit for resolving the name in a URL.
_RESOLVED_WITHIN_S = 5.0


class Url(Field[str]):
    """The URL of a receiver that may be called; its name is resolved."""

    SCHEMA: ClassVar[Schema] = {"type": "string", "format": "uri", "minLength": 1, "maxLength": URL_LENGTH_MAX}

    def check(self, value: Any, limits: Settings) -> str:
        if not isinstance(value, str):
            raise FieldFault(f"must be a string, but is {kind(value)}.")
        try:
            resolve(parse(value), timeout_s=_RESOLVED_WITHIN_S)
        except ReceiverRefused as refused:
            raise FieldFault(str(refused)) from None
        return value


class Description(Text):
    """A text for people; an empty one says nothing, and is none."""

    def check(self, value: Any, limits: Settings) -> Any:
        return super().check(value, limits) or None


_URL = Url(
    "url",
    "The URL that events are sent to: https, without user info, at a public address.",
    "https://shop.example.com/points",
    is_required=True,
)
_TYPES = KnownNames(
    "types",
    "The types of events to send, `*` for any part of one.",
    ["*"],
    of="types of events",
    noun="type",
    taker="a webhook",
    known=PATTERNS,
    is_known=lambda pattern: bool(types_like(pattern)),
    entries={"type": "string", "pattern": GLOB.pattern, "examples": list(PATTERNS)},
    most=TYPES_MAX,
    default=["*"],
)


class Webhook(NamedTuple):
    """Where events are sent: a cursor over the log."""

    id: Annotated[Id, says("The id of the webhook.", 1)]
    organization_id: int
    sandbox: bool
    url: Annotated[str, says("Where events are sent.", "https://shop.example.com/points"), Shown(written=_URL)]
    types: Annotated[
        list[str],
        says("The types of events that it takes, in which `*` stands for any part.", ["batch.*"]),
        Shown(written=_TYPES, null="all"),
    ]
    description: Annotated[
        str | None,
        says("Its description; null if it has none.", "The shop"),
        Shown(written=Description("description", "For people.", "The shop", length_max=255), null="none"),
    ]
    disabled_reason: Annotated[
        str | None,
        says_one_of(
            REASONS,
            "Why it is disabled: by a call, by a 410 of the receiver, or after five days of failures."
            " Null if it is not.",
            None,
        ),
    ]
    position: Annotated[int, says("The sequence of the last event that it has passed.", 4, ge=0)]
    failures: Annotated[int, says("How many attempts to deliver its next event have failed.", 0, ge=0)]
    failing_since: Annotated[
        datetime | None, says("Since when every attempt has failed; null unless the last one failed.", None)
    ]
    retry_at: Annotated[datetime | None, says("When the next attempt is due; null if it waits for an event.", None)]
    previous_secret_until: Annotated[
        datetime | None,
        says("Until when the secret before the last rotation also signs, as others may; null if there is none.", None),
        Shown(name="old_secret_until"),
    ]
    created_at: Annotated[
        datetime, says("When it was made. ISO 8601 in UTC, six decimals.", "2026-01-31T09:00:00.000000Z")
    ]

    @property
    def status(
        self,
    ) -> Annotated[
        str,
        says_one_of(
            STATUSES, "Failing: the last attempt failed, and another follows. Disabled: nothing is sent.", "enabled"
        ),
        Shown(before="disabled_reason"),
    ]:
        if self.disabled_reason is not None:
            return DISABLED
        return ENABLED if self.failing_since is None else FAILING


webhooks = Noun(
    Webhook,
    "webhook",
    "webhooks",
    about_new="A new webhook.",
    about_changed="The fields of a webhook to change; the others stay as they are.",
    computed={"previous_secret_until": "{}previous_until[1]".format},
)


class Delivery(NamedTuple):
    """One attempt to deliver an event."""

    id: Annotated[Id, says("The id of the attempt.", 1)]
    event_id: Annotated[str, says("The id of the event, as in `webhook-id`.", "evt_5"), Shown(name="event.id")]
    sequence: Annotated[int, says("Its sequence.", 5, ge=1), Shown(name="event.sequence")]
    type: Annotated[str, says("Its type.", "ping"), Shown(name="event.type")]
    attempt: Annotated[int, says("The number of this attempt for the event, from 1.", 1, ge=1)]
    status: Annotated[int | None, says("The HTTP status of the answer; null without one.", 200)]
    ms: Annotated[int, says("How long it took, in milliseconds.", 12, ge=0)]
    error: Annotated[
        str | None,
        says(
            "Why it failed, as a stable word: `refused`, `redirected`, `timeout`, `not_connected`,"
            " `tls_failed`, `connection_lost`, `broken_answer`, `address_refused`, `name_not_found`, `https_required`,"
            " `not_renderable` (the event cannot be shown as JSON), `internal_error` (the service's own fault)."
            " Null if it did not fail. More words may be added.",
            None,
        ),
    ]
    created_at: Annotated[
        datetime, says("When it ended. ISO 8601 in UTC, six decimals.", "2026-01-31T09:30:00.492913Z")
    ]

    @property
    def delivered(
        self,
    ) -> Annotated[bool, says("The receiver answered with a 2xx in time.", True), Shown(before="status")]:
        return self.error is None


deliveries = Noun(
    Delivery,
    "delivery",
    "deliveries",
    table="webhook_deliveries",
    parts={"event": Part("DeliveredEvent", "The event that was sent.")},
)

# The most events that are read at a time, and that are looked at if few match.
_EVENTS_READ_MAX = 100
_LOOKED_AT_MAX = 5_000


class Follower(Protocol):
    """What follows the log from a position: a webhook, or its cursor that a worker owns."""

    @property
    def id(self) -> int: ...
    @property
    def organization_id(self) -> int: ...
    @property
    def sandbox(self) -> bool: ...
    @property
    def types(self) -> list[str]: ...
    @property
    def position(self) -> int: ...


def upcoming(connection: Connection, webhook: Follower, *, last_sequence: int) -> tuple[Sequence[Event], int]:
    """Return some of the next events for a webhook, and the sequence up to which there is no other event for it.

    A ping is only for the webhook that it names, with any types.
    """
    events, up_to = read_on(
        connection,
        Scope(webhook.organization_id, webhook.sandbox),
        after=webhook.position,
        types=event_types.matching((*webhook.types, event_types.PING)),
        limit=_EVENTS_READ_MAX,
        looked_at_max=_LOOKED_AT_MAX,
        last_sequence=last_sequence,
    )
    return [event for event in events if _is_for(event, webhook)], up_to


def _is_for(event: Event, webhook: Follower) -> bool:
    if event.type != event_types.PING:
        return True
    target = (event.data or {}).get("webhook")
    return isinstance(target, dict) and target.get("id") == webhook.id


class WebhookLimit(LimitReached):
    """The organization already has ten webhooks in this mode."""

    field = "url"
    says = "There are already {limit} webhooks, which is the limit. Delete one first."


class WebhookConflict(PointsError):
    """A webhook is not in the state that the call needs; the sentence says what can be done instead."""

    status = 409
    field = "webhook"


class WebhookDisabled(WebhookConflict):
    """The webhook is disabled."""

    says = "The webhook is disabled, so nothing is sent to it. Enable it first."


class WebhookRotatedOften(WebhookConflict):
    """So many secrets sign already that another signature might not fit into the header."""

    says = f"The secret was changed {PREVIOUS_SECRETS_MAX} times within 24 hours: wait until the first is a day past."


class WebhookNotStuck(WebhookConflict):
    """No attempt to deliver its next event has failed."""

    says = "The webhook is not stuck: no attempt to deliver its next event has failed."
