"""The description of requests: headers and queries as parameters, bodies as models with the limits of the settings.

`app/api/requests/issue.py` reports every fault of a body at once. Models cannot do that, so it checks without them.
`tests/unit/test_openapi_requests.py` proves that the service takes what is described here.
"""

from typing import Annotated, Any, Literal

from pydantic import BaseModel, ConfigDict, Field, RootModel, WithJsonSchema

from app.api.openapi.answers import says
from app.api.requests.events_query import TYPES_LENGTH_MAX, WAIT_MAX_S
from app.api.requests.fields import (
    METADATA_KEY_LENGTH_MAX,
    METADATA_KEYS_MAX,
    METADATA_VALUE_LENGTH_MAX,
)
from app.api.requests.reverse import REASON_LENGTH_MAX
from app.api.requests.webhook import DESCRIPTION_LENGTH_MAX, TYPES_MAX
from app.batches.read import STATES, STATUSES
from app.events.types import PATTERNS
from app.pages.filters import LOOKED_AT_MAX
from app.pages.queries import FORMS, LIMIT_DEFAULT, LIMIT_MAX
from app.pages.queries import PARAMETERS as PARAMETERS_OF_LISTS
from app.reversals.read import STATUSES as REVERSAL_STATUSES
from app.settings import INT64_MAX, Settings
from app.values.hold_days import HOLD_DAYS_MAX
from app.values.texts import LABEL_LENGTH_MAX, REFERENCE, REFERENCE_LENGTH_MAX
from app.webhooks.receivers import URL_LENGTH_MAX

_TEXT = {"type": "string"}
_MOMENT = {"type": "string", "format": "date-time", "pattern": FORMS["created_from"]}
_KEY_FORM = {"pattern": FORMS["idempotency_key"]}
_REFERENCE_FORM = {"minLength": 1, "maxLength": REFERENCE_LENGTH_MAX, "pattern": REFERENCE.pattern}
_ID = {"type": "integer", "format": "int64", "minimum": 1}


def _parameter(where: str, name: str, description: str, schema: dict[str, Any], **more: Any) -> dict[str, Any]:
    described = {"name": name, "in": where, "required": where == "path", "description": description}
    return described | {"schema": schema} | more


def _page(email: str, created: str, flag: str, *more: tuple[str, str, dict[str, Any]]) -> list[dict[str, Any]]:
    """Return the parameters of a list, with their meaning in it; `{}` in `flag` stands for the flag's name."""
    limit = {"type": "integer", "minimum": 1, "maximum": LIMIT_MAX, "default": LIMIT_DEFAULT}
    rows: list[tuple[str, str, dict[str, Any]]] = [
        ("limit", "At most this many rows.", limit),
        ("cursor", "The `next_cursor` of the page before.", _TEXT | {"pattern": FORMS["cursor"]}),
        ("email", email, _TEXT | {"format": "idn-email", "pattern": "@"}),
        ("batch", "Of this batch.", _ID | {"maximum": INT64_MAX}),
        ("created_from", f"{created} at this time or later. ISO 8601 with a zone.", _MOMENT),
        ("created_to", f"{created} at this time or earlier. ISO 8601 with a zone.", _MOMENT),
        *((name, flag.format(name), {"type": "boolean"}) for name in ("debited", "credited", "allocated")),
        *more,
    ]
    return [_parameter("query", *row) for row in rows]


_REQUEST_ID = "Your own id for this request: 1 to 128 letters, digits or `._:/+=@-`. Any other value is replaced."
_KEY = """\
Makes a repeated send safe: 1 to 255 visible ASCII characters, kept for at least 30 days from the issue, per
organization and mode. Make a new key for each batch, and send it again with each retry."""
_PREFER = "`respond-async`: do not wait for the issue, answer 202 at once."

HEADERS = {
    "X-Request-Id": _parameter("header", "X-Request-Id", _REQUEST_ID, _TEXT),
    "Idempotency-Key": _parameter("header", "Idempotency-Key", _KEY, _TEXT | _KEY_FORM),
    "Prefer": _parameter("header", "Prefer", _PREFER, _TEXT, example="respond-async"),
}
# On every call to a webhook.
SIGNED_HEADERS = [
    _parameter("header", "webhook-id", "The `id` of the event, the same at each attempt.", _TEXT, example="evt_7")
    | {"required": True},
    _parameter("header", "webhook-timestamp", "When this attempt was made, in seconds since 1970.", _TEXT)
    | {"required": True},
    _parameter(
        "header",
        "webhook-signature",
        "`v1,` and the HMAC-SHA256, in base64, of id, timestamp and body joined by dots. For a day after a rotation"
        " there are two of these, separated by a blank.",
        _TEXT,
    )
    | {"required": True},
]
PARAMETERS: dict[str, list[dict[str, Any]]] = {
    **{name: [{"$ref": f"#/components/parameters/{name}"}] for name in HEADERS},
    "id of a batch": [_parameter("path", "id", "The `additional_data.batch_id` of the send.", _ID, example=1)],
    "id of a reversal": [_parameter("path", "id", "The `reversal_id` of the reversal.", _ID, example=2)],
    "id of a webhook": [_parameter("path", "id", "The `id` of the webhook.", _ID, example=1)],
    "id of a transaction": [_parameter("path", "id", "The `id` of the transaction.", _ID, example=131_072)],
    "page of batches": _page(
        "With a transaction of this address: issued batches only.",
        "Accepted",
        "With at least one transaction that has this `{}` and the other flags asked for.",
        ("idempotency_key", "Sent with this `Idempotency-Key`, as long as it is kept.", _TEXT | _KEY_FORM),
        ("label", "With exactly this label.", _TEXT | {"minLength": 1, "maxLength": LABEL_LENGTH_MAX}),
        ("status", "In this state.", _TEXT | {"enum": list(STATUSES)}),
    ),
    "page of transactions": _page(
        "Of this address.",
        "Issued",
        "With this `{}`.",
        ("reference", "Of an item with exactly this reference, in any batch.", _TEXT | _REFERENCE_FORM),
        ("state", "In this state.", _TEXT | {"enum": list(STATES)}),
        ("user", "Whose `recipient` is the user with this id.", _ID | {"maximum": INT64_MAX}),
    ),
}
PARAMETERS["page of reversals"] = [
    *(
        parameter
        for parameter in PARAMETERS["page of batches"]
        if parameter["name"] in set(PARAMETERS_OF_LISTS["reversals"]) - {"status"}
    ),
    _parameter("query", "status", "In this state.", _TEXT | {"enum": list(REVERSAL_STATUSES)}),
]
_TYPES_FORM = {"pattern": r"^[a-z.*]+(,[a-z.*]+)*$", "maxLength": TYPES_LENGTH_MAX}
PARAMETERS["events"] = [
    _parameter(
        "query",
        "after",
        "Return the events after this sequence; 0: from the first. By default from the oldest kept event.",
        {"type": "integer", "format": "int64", "minimum": 0, "maximum": INT64_MAX},
    ),
    _parameter(
        "query",
        "types",
        "Only these types, with commas between them; `*` stands for any part of one.",
        _TEXT | _TYPES_FORM,
        example="batch.*,transaction.claimed",
    ),
    _parameter(
        "query",
        "limit",
        "At most this many events.",
        {"type": "integer", "minimum": 1, "maximum": LIMIT_MAX, "default": LIMIT_DEFAULT},
    ),
    _parameter(
        "query",
        "wait",
        "If there is no event, wait up to this many seconds for one. Two calls of a key may wait at once; further calls"
        " are answered without waiting.",
        {"type": "integer", "minimum": 0, "maximum": WAIT_MAX_S, "default": 0},
    ),
]
PARAMETERS["page of deliveries"] = [
    parameter for parameter in PARAMETERS["page of batches"] if parameter["name"] in PARAMETERS_OF_LISTS["deliveries"]
]
PAGES = f"""\
Newest first. A page holds up to `limit` rows; `next_cursor` leads to the next page with the same filters, and is null
at the end. A page may hold fewer rows, even none, and still have a next page, because it looks at no more than
{LOOKED_AT_MAX:,} rows. Points may be issued or claimed between two pages: no row comes twice, and no row that was there
before the first page is left out. A cursor does not expire. A parameter that is not listed is a fault; one 400 names
all faults."""


class Recipient(RootModel[Annotated[str, Field(pattern="@", json_schema_extra={"format": "idn-email"})]]):
    """An e-mail address of up to 254 characters; surrounding blanks are trimmed. International domains and local parts
    are allowed. Two addresses are the same when their normalised lower-case forms are equal; dots and plus signs are
    not folded."""


# The values that count as missing.
_Missing = Annotated[
    None, WithJsonSchema({"type": ["string", "array", "null"], "maxLength": 0, "maxItems": 0, "items": {}})
]
_NO_NUL = "^[^\\u0000]*$"
_Label = Annotated[str, Field(max_length=LABEL_LENGTH_MAX, pattern=_NO_NUL)]
_Moment = Annotated[str, WithJsonSchema(_MOMENT)]
_SEND_AT = "When to issue the batch: ISO 8601 with a zone, 1 minute to 366 days ahead."
_HOLD_DAYS = (
    f"For how many days points may be held, 1 to {HOLD_DAYS_MAX:,}; then they go back to the organization. The default"
    " is the organization's own number of days, if it has one."
)
_Reference = Annotated[str, WithJsonSchema(_TEXT | _REFERENCE_FORM)]
_MetadataKey = Annotated[str, Field(min_length=1, max_length=METADATA_KEY_LENGTH_MAX, pattern=_NO_NUL)]
_MetadataValue = Annotated[str, Field(max_length=METADATA_VALUE_LENGTH_MAX, pattern=_NO_NUL)]


_AMOUNT = 'Points for **each** recipient, or for each item without its own. `10.0`, `1e1` and `"10"` are not integers.'


class Expect(BaseModel):
    """Control totals: what you believe to send. A difference is a fault, and nothing is written."""

    model_config = ConfigDict(extra="forbid", json_schema_extra={"minProperties": 1})

    recipients: int | None = says("The number of recipients.", 2, default=None)
    amount: int | None = says("The points for all recipients together.", 100, default=None)


class Reschedule(BaseModel):
    """Another moment for a scheduled batch."""

    model_config = ConfigDict(extra="forbid")

    send_at: _Moment = says(_SEND_AT)


class Extend(BaseModel):
    """A later end for a held transaction."""

    model_config = ConfigDict(extra="forbid")

    held_until: _Moment = says(
        f"Until when to hold the points: ISO 8601 with a zone, later than now, at most {HOLD_DAYS_MAX:,} days ahead."
    )


_Types = Annotated[
    list[Literal[PATTERNS]],  # type: ignore[valid-type]
    Field(min_length=1, max_length=TYPES_MAX, json_schema_extra={"uniqueItems": True}),
]
_Url = Annotated[str, Field(min_length=1, max_length=URL_LENGTH_MAX, json_schema_extra={"format": "uri"})]
_Description = Annotated[str, Field(max_length=DESCRIPTION_LENGTH_MAX, pattern=_NO_NUL)]
_URL = "The URL that events are sent to: https, without user info, at a public address."


class NewWebhook(BaseModel):
    """A new webhook."""

    model_config = ConfigDict(extra="forbid")

    url: _Url = says(_URL, "https://shop.example.com/points")
    types: _Types | None = says("The types of events to send; all by default.", ["*"], default=None)
    description: _Description | None = says("For people.", "The shop", default=None)


class ChangedWebhook(BaseModel):
    """The fields of a webhook to change; the others stay as they are."""

    model_config = ConfigDict(extra="forbid", json_schema_extra={"minProperties": 1})

    url: _Url = says(_URL, "https://shop.example.com/points", default="")
    types: _Types | None = says("The types of events to send; null: all.", ["*"], default=None)
    description: _Description | None = says("For people; null: none.", "The shop", default=None)


class Replay(BaseModel):
    """Where to start again."""

    model_config = ConfigDict(extra="forbid")

    from_sequence: Annotated[int, Field(ge=1, json_schema_extra={"format": "int64"})] = says(
        "The sequence of the first event to send again.", 1
    )


def bodies(limits: Settings) -> list[type[BaseModel]]:
    """Return the models of the bodies, with the limits of these settings."""
    once = "" if limits.allow_repeats else " No address twice."

    amount_of_one = Annotated[int, Field(ge=1, le=limits.amount_max, json_schema_extra={"format": "int64"})]

    class Issue(BaseModel):
        model_config = ConfigDict(extra="forbid")

        amount: amount_of_one = says(_AMOUNT, 50)
        atomic: bool | None = says("True: debit nobody if the balance cannot pay the whole batch.", True, default=False)
        label: _Label | None = says("Kept on every transaction of the batch.", "January", default=None)
        expect: Expect | None = says(
            "Control totals, either or both. A difference is a 400, and nothing is written.", default=None
        )
        metadata: Annotated[dict[_MetadataKey, _MetadataValue], Field(max_length=METADATA_KEYS_MAX)] | None = says(
            "Shown on the batch, and never on its transactions.", {"run": "2026-01"}, default=None
        )

    class IssueToMany(Issue):
        """Points for a list of recipients."""

        recipients: list[Recipient] = says(
            f"E-mail addresses, in order. Required unless `recipient` is sent.{once}",
            min_length=1,
            max_length=limits.recipients_max,
            json_schema_extra={"uniqueItems": not limits.allow_repeats},
        )
        recipient: _Missing = says("Not beside `recipients`.", default=None)
        items: _Missing = says("Not beside `recipients`.", default=None)

    class IssueToOne(Issue):
        """Points for one recipient."""

        recipient: Recipient = says(
            "One e-mail address, the same as a list of one. Required unless `recipients` is sent."
        )
        recipients: _Missing = says("Not beside `recipient`.", default=None)
        items: _Missing = says("Not beside `recipient`.", default=None)

    class Item(BaseModel):
        """One recipient, with its own amount, label and reference."""

        model_config = ConfigDict(extra="forbid")

        email: Recipient = says(f"Its e-mail address.{once and ' Twice only if both items have a `reference`.'}")
        amount: amount_of_one | None = says(
            "Points for this recipient. Required unless the body has an `amount`.", 50, default=None
        )
        label: _Label | None = says("Kept on its transaction, in place of the body's label.", None, default=None)
        reference: _Reference | None = says(
            f"Your own id of the item: 1 to {REFERENCE_LENGTH_MAX} visible characters, unique in the batch."
            " Shown on its transaction; the list of transactions can filter by it.",
            "4711",
            default=None,
        )

    class IssueToEach(Issue):
        """Points for recipients that each have their own amount, label or reference."""

        items: list[Item] = says(
            "In order, in place of `recipient` and `recipients`. The first item that the balance cannot pay ends the"
            " paying: it and all items after it are not debited, not even smaller ones.",
            min_length=1,
            max_length=limits.recipients_max,
        )
        amount: amount_of_one | None = says(_AMOUNT, default=None)  # type: ignore[assignment]
        recipients: _Missing = says("Not beside `items`.", default=None)
        recipient: _Missing = says("Not beside `items`.", default=None)

    class Reverse(BaseModel):
        model_config = ConfigDict(extra="forbid")

        reason: Annotated[str, Field(min_length=1, max_length=REASON_LENGTH_MAX, pattern=_NO_NUL)] = says(
            "Why the points are taken back; kept with the reversal.", "The wrong list"
        )
        amount: Annotated[int, Field(ge=1, json_schema_extra={"format": "int64"})] | None = says(
            "Points to take from **each** transaction. By default all that are left.", None, default=None
        )
        atomic: bool | None = says("True: take all or nothing.", False, default=False)

    class ReverseBatch(Reverse):
        """Take back a whole batch."""

        batch: Annotated[int, Field(ge=1, json_schema_extra={"format": "int64"})] = says("The id of the batch.", 1)
        transactions: _Missing = says("Not beside `batch`.", default=None)

    class ReverseTransactions(Reverse):
        """Take back some transactions."""

        transactions: list[Annotated[int, Field(ge=1, json_schema_extra={"format": "int64"})]] = says(
            "Ids of transactions, each once.",
            min_length=1,
            max_length=limits.recipients_max,
            json_schema_extra={"uniqueItems": True},
        )
        batch: _Missing = says("Not beside `transactions`.", default=None)

    class ReverseRequest(RootModel[ReverseBatch | ReverseTransactions]):
        """Points to take back: of a `batch` or of `transactions`. Null, `""` and `[]` count as missing. A field that is
        not listed is a fault."""

        model_config = ConfigDict(json_schema_extra=lambda schema: schema.update(oneOf=schema.pop("anyOf")))

    class IssueRequest(RootModel[IssueToMany | IssueToOne | IssueToEach]):
        """Points for recipients, in one of `recipients`, `recipient` and `items`. Null, `""` and `[]` count as missing.
        A field that is not listed is a fault."""

        model_config = ConfigDict(json_schema_extra=lambda schema: schema.update(oneOf=schema.pop("anyOf")))

    class Later(BaseModel):
        send_at: _Moment | None = says(_SEND_AT, default=None)
        hold_days: Annotated[int, Field(ge=1, le=HOLD_DAYS_MAX)] | None = says(_HOLD_DAYS, None, default=None)

    class SendToMany(Later, IssueToMany):
        """Points for a list of recipients, at once or later."""

    class SendToOne(Later, IssueToOne):
        """Points for one recipient, at once or later."""

    class SendToEach(Later, IssueToEach):
        """Points for recipients that each have their own amount, label or reference, at once or later."""

    class SendRequest(RootModel[SendToMany | SendToOne | SendToEach]):
        """The body of verify, with when to issue it and for how long to hold the points."""

        model_config = ConfigDict(json_schema_extra=lambda schema: schema.update(oneOf=schema.pop("anyOf")))

    return [IssueRequest, SendRequest, Reschedule, Extend, ReverseRequest, NewWebhook, ChangedWebhook, Replay]
