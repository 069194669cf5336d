"""The headers of requests and answers, described once and referred to by name."""

from typing import Any

from app.api.envelope import HEADERS

# Each is on every answer, whatever its status.
_EVERYWHERE = ("X-Request-Id", *HEADERS)


def always(description: str, value: str) -> dict[str, Any]:
    """Describe a header that always has this value."""
    return {"description": description, "required": True, "schema": {"type": "string", "const": value}}


def _seconds(description: str) -> dict[str, Any]:
    # The schema is one of texts, as headers are: whoever checks an answer need not guess what to convert.
    return {"description": description, "required": True, "schema": {"type": "string", "pattern": "^[1-9][0-9]*$"}}


DESCRIBED: dict[str, Any] = {
    "X-Request-Id": {
        "description": "Names this request; quote it when you report a problem. It is the caller's own if that is "
        "1 to 128 characters of letters, digits and `._:/+=@-`, and holds no key.",
        "required": True,
        "schema": {"type": "string", "pattern": "^[A-Za-z0-9._:/+=@-]{1,128}$"},
    },
    "Cache-Control": always("No answer may be kept, by anybody.", HEADERS["Cache-Control"]),
    "Vary": always("What an answer depends on besides its address.", HEADERS["Vary"]),
    "Via": always("The front end, a gateway to the workers, names itself.", HEADERS["Via"]),
    "WWW-Authenticate": always("The scheme in which a key is sent.", "Bearer"),
    "Allow": {
        "description": "The methods that this path takes.",
        "required": True,
        "schema": {"type": "string", "enum": ["POST", "GET, HEAD", "HEAD, GET"]},
    },
    "Retry-After": _seconds("In how many seconds to ask again."),
    "Location": {
        "description": "Where the batch is read.",
        "required": True,
        "schema": {"type": "string", "pattern": "^/v1/batches/[1-9][0-9]*$"},
    },
    "Idempotency-Replayed": {
        "description": "`true` when the batch had been issued before this call: the answer is the first call's again.",
        "required": False,
        "schema": {"type": "string", "const": "true"},
    },
}

PARAMETERS: dict[str, Any] = {
    "X-Request-Id": {
        "name": "X-Request-Id",
        "in": "header",
        "required": False,
        "description": "A name of your own for this request. One that is not sane is replaced.",
        "schema": {"type": "string"},
    },
    "Idempotency-Key": {
        "name": "Idempotency-Key",
        "in": "header",
        "required": False,
        "description": "Makes a repeated send harmless: 1 to 255 visible ASCII characters, kept for at least 30 days "
        "per organization and mode. Make one for each batch, and send it again with each retry.",
        "schema": {"type": "string", "pattern": "^[!-~]{1,255}$"},
    },
    "Prefer": {
        "name": "Prefer",
        "in": "header",
        "required": False,
        "description": "`respond-async`: do not wait for the issue, answer 202 at once.",
        "schema": {"type": "string"},
        "example": "respond-async",
    },
}


def answered(*more: str) -> dict[str, Any]:
    """Return the headers of an answer: those that all have, and some more."""
    return {name: {"$ref": f"#/components/headers/{name}"} for name in (*_EVERYWHERE, *more)}


def parameter(name: str) -> dict[str, str]:
    return {"$ref": f"#/components/parameters/{name}"}
