"""The parameters of requests: headers and queries, with their descriptions and forms."""

from typing import Any

from app.api.requests.query import TYPES_LENGTH_MAX, WAIT_MAX_S
from app.batches.read import STATES, STATUSES
from app.batches.rehearsing import WORDS
from app.pages.filters import LOOKED_AT_MAX
from app.pages.parameters import FORMS, LIMIT_DEFAULT, LIMIT_MAX
from app.pages.queries import PARAMETERS as PARAMETERS_OF_LISTS
from app.reversals.read import STATUSES as REVERSAL_STATUSES
from app.settings import INT64_MAX
from app.values.texts import LABEL_LENGTH_MAX, REFERENCE, REFERENCE_LENGTH_MAX

_TEXT = {"type": "string"}
_TIME = "ISO 8601 with a zone: an offset is whole quarters of an hour from `-12:00` to `+14:00`."
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
        ("created_from", f"{created} at this time or later. {_TIME}", _MOMENT),
        ("created_to", f"{created} at this time or earlier. {_TIME}", _MOMENT),
        *((name, flag.format(name), {"type": "boolean"}) for name in ("debited", "credited", "allocated")),
        *more,
    ]
    return [_parameter("query", *row) for row in rows]


_REQUEST_ID = "Your own id for this request: 1 to 128 letters, digits or `._:/+=@-`. Any other value is replaced."
_KEY = """\
Makes a repeated send safe: 1 to 255 visible ASCII characters, kept for at least 30 days from the issue, per
organization and mode. Make a new key for each batch, and send it again with each retry."""
_REHEARSE = """\
With a development key, what the call is to meet, whoever its recipients are; `insufficient`: the balance pays nobody.
With a live key, and for any other word, it is a fault."""
_PREFER = "`respond-async`: do not wait for the issue, answer 202 at once. `wait=5`: wait 5 s at most."

HEADERS = {
    "X-Request-Id": _parameter("header", "X-Request-Id", _REQUEST_ID, _TEXT),
    "Idempotency-Key": _parameter("header", "Idempotency-Key", _KEY, _TEXT | _KEY_FORM),
    "Prefer": _parameter("header", "Prefer", _PREFER, _TEXT, example="respond-async"),
    "Points-Rehearse": _parameter("header", "Points-Rehearse", _REHEARSE, _TEXT | {"enum": list(WORDS)}),
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
PARAMETERS["id of a user"] = [_parameter("path", "id", "The `id` of the user.", _ID, example=7)]
PARAMETERS["page of users"] = [
    *(
        parameter
        for parameter in PARAMETERS["page of batches"]
        if parameter["name"] in set(PARAMETERS_OF_LISTS["users"]) - {"email"}
    ),
    _parameter("query", "email", "Known by this address.", _TEXT | {"format": "idn-email", "pattern": "@"}),
    _parameter("query", "external_id", "With exactly this id of yours.", _TEXT | _REFERENCE_FORM),
]
_PAGE_ALONE = [parameter for parameter in PARAMETERS["page of batches"] if parameter["name"] in ("limit", "cursor")]
PARAMETERS["id of an organization"] = [_parameter("path", "id", "The `id` of the organization.", _ID, example=1)]
PARAMETERS["id of a key"] = [_parameter("path", "key_id", "The `id` of the key.", _ID, example=4)]
PARAMETERS["page of organizations"] = PARAMETERS["page of keys"] = PARAMETERS["page of entries"] = _PAGE_ALONE
PARAMETERS["page of refills"] = [
    *_PAGE_ALONE,
    _parameter("query", "sandbox", "True: of the sandbox balance; else of the live one.", {"type": "boolean"}),
]
PARAMETERS["page of actions"] = [
    *_PAGE_ALONE,
    _parameter("query", "organization", "What concerns this organization.", _ID | {"maximum": INT64_MAX}),
    _parameter(
        "query",
        "by",
        "By whom: a kind (`member`, `platform_key`, `operator`), or one of it: `member:7`, `platform_key:3`,"
        " `operator:ada`.",
        _TEXT | {"pattern": FORMS["author"]},
        example="operator",
    ),
    _parameter("query", "created_from", f"Done at this time or later. {_TIME}", _MOMENT),
    _parameter("query", "created_to", f"Done at this time or earlier. {_TIME}", _MOMENT),
]
_TYPES_FORM = {"pattern": r"^[a-z._*]+(,[a-z._*]+)*$", "maxLength": TYPES_LENGTH_MAX}
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
PARAMETERS["platform events"] = [
    parameter | {"example": "user.*"} if parameter["name"] == "types" else parameter
    for parameter in PARAMETERS["events"]
]
PARAMETERS["page of deliveries"] = [
    parameter for parameter in PARAMETERS["page of batches"] if parameter["name"] in PARAMETERS_OF_LISTS["deliveries"]
]
PARAMETERS["page of requests"] = [
    *(
        parameter
        for parameter in PARAMETERS["page of batches"]
        if parameter["name"] in set(PARAMETERS_OF_LISTS["requests"]) - {"batch", "status", "created_from", "created_to"}
    ),
    _parameter("query", "created_from", f"Arrived at this time or later. {_TIME}", _MOMENT),
    _parameter("query", "created_to", f"Arrived at this time or earlier. {_TIME}", _MOMENT),
    _parameter("query", "request_id", "With this `X-Request-Id`.", _TEXT | {"pattern": FORMS["request_id"]}),
    _parameter("query", "api_key", "Made with the key of this id.", _ID | {"maximum": INT64_MAX}),
    _parameter("query", "batch", "About this batch.", _ID | {"maximum": INT64_MAX}),
    _parameter(
        "query",
        "status",
        "Answered with this status, such as `403`, or with any of a hundred, such as `4xx`.",
        _TEXT | {"pattern": FORMS["status of an answer"]},
    ),
]
_DAY = _TEXT | {"format": "date", "pattern": FORMS["day"]}
PARAMETERS["days of a statement"] = [
    _parameter("query", "from", "The first day, in UTC.", _DAY, example="2026-01-01") | {"required": True},
    _parameter(
        "query", "to", "The last day: today or earlier, and at most 366 days in all.", _DAY, example="2026-01-31"
    )
    | {"required": True},
]
PAGES = f"""\
Newest first. A page holds up to `limit` rows; `next_cursor` leads to the next page with the same filters, and is null
at the end. A page may hold fewer rows, even none, and still have a next page, because it looks at no more than
{LOOKED_AT_MAX:,} rows. Points may be issued or claimed between two pages: no row comes twice, and no row that was there
before the first page is left out. A cursor does not expire. A parameter that is not listed is a fault; one 400 names
all faults."""
