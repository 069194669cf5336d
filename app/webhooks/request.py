"""The requests that make, change and replay a webhook: read from a mapping, with every fault in one answer."""

from collections.abc import Mapping
from dataclasses import replace
from typing import Any, ClassVar

from app.events.log import GLOB, PATTERNS, types_like
from app.fields.field import Field, FieldFault, Schema, Table, kind
from app.fields.kinds import Integer, Text
from app.fields.names import KnownNames
from app.settings import INT64_MAX, Settings
from app.webhooks.receivers import URL_LENGTH_MAX, ReceiverRefused, parse, resolve

DESCRIPTION_LENGTH_MAX = 255
TYPES_MAX = 50
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


URL = Url(
    "url",
    "The URL that events are sent to: https, without user info, at a public address.",
    "https://shop.example.com/points",
    is_required=True,
)
TYPES = KnownNames(
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
    takes_empty=True,
)
DESCRIPTION = Text("description", "For people.", "The shop", length_max=DESCRIPTION_LENGTH_MAX)
NEW_WEBHOOK = Table("NewWebhook", "A new webhook.", URL, TYPES, DESCRIPTION)
CHANGED_WEBHOOK = Table(
    "ChangedWebhook",
    "The fields of a webhook to change; the others stay as they are.",
    # What is left out stays as it is, so nothing has a default.
    replace(URL, is_required=False, is_nullable=False, default=...),
    replace(TYPES, about="The types of events to send, `*` for any part of one; null: all.", default=...),
    replace(DESCRIPTION, about="For people; null: none.", default=...),
    minProperties=1,
)
FROM_SEQUENCE = Integer(
    "from_sequence",
    "The sequence of the first event to send again.",
    1,
    minimum=1,
    maximum=INT64_MAX,
    bounds="the sequence of an event, an integer of at least 1",
    is_required=True,
)
REPLAY = Table("Replay", "Where to start again.", FROM_SEQUENCE)


def read_webhook(fields: Mapping[str, Any], limits: Settings, *, is_new: bool) -> dict[str, Any]:
    """Return the columns to set: all of them for a new webhook, otherwise those that are sent.

    Raises:
        InvalidRequest: with every fault, each under its field; a bad type under its place, `types.1`.
    """
    faults = NEW_WEBHOOK.new_faults(fields)
    rows = [row for row in NEW_WEBHOOK.rows if is_new or row.name in fields]
    columns = {row.name: row.read(fields, faults, limits) for row in rows}
    if not columns and faults.is_empty:
        faults.add("body", f"The body must have at least one of {', '.join(NEW_WEBHOOK.names)}.")
    faults.raise_if_any()
    return columns
