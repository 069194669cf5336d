"""The parameters of requests: headers and queries, with their descriptions and forms."""

from typing import Any

from app.api.requests.query import TYPES_LENGTH_MAX, WAIT_MAX_S
from app.batches.accept import IDEMPOTENCY_KEY
from app.batches.verify import WORDS
from app.pages import parameters as pages
from app.pages.filters import LOOKED_AT_MAX
from app.settings import INT64_MAX

_TEXT = {"type": "string"}
_KEY_FORM = {"pattern": IDEMPOTENCY_KEY.pattern}
_ID = {"type": "integer", "format": "int64", "minimum": 1}


def _parameter(where: str, name: str, description: str, schema: dict[str, Any], **more: Any) -> dict[str, Any]:
    described = {"name": name, "in": where, "required": where == "path", "description": description}
    return described | {"schema": schema} | more


def _query(name: str, description: str, schema: dict[str, Any], **more: Any) -> dict[str, Any]:
    return _parameter("query", name, description, schema, **more)


_REQUEST_ID = "Your own id for this request: 1 to 128 letters, digits or `._:/+=@-`. Any other value is replaced."
_KEY = """\
Makes a repeated call safe: 1 to 255 visible ASCII characters, per call and organization and mode, or the platform. It
is kept for 24 hours at least, that of a send or a reversal for 30 days. Make a new key for each thing that is to be
made, and send it again with each retry."""
_REHEARSE = """\
With a development key, what the call is to meet, whoever its recipients are; `insufficient`: the balance pays nobody.
With a live key, and for any other word, it is a fault."""
_PREFER = """\
`respond-async`: do not wait for the issue, answer 202 at once. `wait=5`: wait 5 s at most. Without one of these, or
with another value of it, it is a fault; beside one of them, another preference is ignored."""
_PREFER_FORM = {"pattern": "^(respond-async|wait=[0-9]{1,9})?$"}

HEADERS = {
    "X-Request-Id": _parameter("header", "X-Request-Id", _REQUEST_ID, _TEXT),
    "Idempotency-Key": _parameter("header", "Idempotency-Key", _KEY, _TEXT | _KEY_FORM),
    "Prefer": _parameter("header", "Prefer", _PREFER, _TEXT | _PREFER_FORM, example="respond-async"),
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
_TYPES_FORM = {"pattern": r"^[a-z._*]+(,[a-z._*]+)*$", "maxLength": TYPES_LENGTH_MAX}
_DAY = _TEXT | {"format": "date", "pattern": pages.DAY.pattern}


def _events(example: str) -> list[dict[str, Any]]:
    """Return the parameters of a log; `example` is one of its types."""
    return [
        _query(
            "after",
            "Return the events after this sequence; 0: from the first. By default from the oldest kept event.",
            {"type": "integer", "format": "int64", "minimum": 0, "maximum": INT64_MAX},
        ),
        _query(
            "types",
            "Only these types, with commas between them; `*` stands for any part of one.",
            _TEXT | _TYPES_FORM,
            example=example,
        ),
        _query("limit", "At most this many events.", dict(pages.LIMIT.schema)),
        _query(
            "wait",
            "If there is no event, wait up to this many seconds for one. Two calls of a key may wait at once; further"
            " calls are answered without waiting.",
            {"type": "integer", "minimum": 0, "maximum": WAIT_MAX_S, "default": 0},
        ),
    ]


def _id_of(noun: str, description: str, example: int, *, name: str = "id") -> dict[str, dict[str, Any]]:
    return {f"{noun}_id": _parameter("path", name, description, _ID, example=example)}


# The ids in paths, as the functions of the calls name them.
IDS = {
    **_id_of("batch", "The `additional_data.batch_id` of the send.", 1),
    **_id_of("reversal", "The `reversal_id` of the reversal.", 2),
    **_id_of("webhook", "The `id` of the webhook.", 1),
    **_id_of("transaction", "The `id` of the transaction.", 131_072),
    **_id_of("user", "The `id` of the user.", 7),
    **_id_of("organization", "The `id` of the organization.", 1),
    **_id_of("key", "The `id` of the key.", 4, name="key_id"),
    **_id_of("member", "The `id` of the member.", 2, name="member_id"),
}
# The queries, by what `@call` names: a list, a log or a statement.
QUERIES: dict[str, list[dict[str, Any]]] = {
    **{
        kind: [
            _query(of.name, of.about, dict(of.schema), **({"example": of.example} if of.example else {}))
            for of in its.values()
        ]
        for kind, its in pages.PARAMETERS.items()
    },
    "events": _events("batch.*,transaction.claimed"),
    "events of the platform": _events("user.*"),
    "days of a statement": [
        _query("from", "The first day, in UTC.", _DAY, example="2026-01-01") | {"required": True},
        _query("to", "The last day: today or earlier, and at most 366 days in all.", _DAY, example="2026-01-31")
        | {"required": True},
    ],
}
PAGES = f"""\
Newest first. A page holds up to `limit` rows; `next_cursor` leads to the next page with the same filters, and is null
at the end. A page may hold fewer rows, even none, and still have a next page, because it looks at no more than
{LOOKED_AT_MAX:,} rows. Points may be issued or claimed between two pages: no row comes twice, and no row that was there
before the first page is left out. A cursor does not expire. A parameter that is not listed is a fault; one 400 names
all faults."""
