"""The headers of answers, described once and referred to by name."""

from typing import Any

from app.api.call import envelope
from app.api.docs import SECURITY

# On every answer, whatever its status.
EVERYWHERE = ("X-Request-Id", *envelope.HEADERS)
KEY = {
    "type": "http",
    "scheme": "bearer",
    "bearerFormat": "pts_live_… or pts_dev_…",
    "description": "`Authorization: Bearer <key>`. A key is shown once, when it is made, and can be revoked at once.",
}


def _header(description: str, *, required: bool = True, **schema: Any) -> dict[str, Any]:
    # A schema of text, as headers are: whoever checks an answer need not guess what to convert.
    return {"description": description, "required": required, "schema": {"type": "string", **schema}}


HEADERS = {
    "X-Request-Id": _header(
        "Names this request; quote it when you report a problem. It is the caller's own if that is 1 to 128 characters "
        "of letters, digits and `._:/+=@-`, and holds no key.",
        pattern="^[A-Za-z0-9._:/+=@-]{1,128}$",
    ),
    "Cache-Control": _header("No answer may be kept, by anybody.", const=envelope.HEADERS["Cache-Control"]),
    "Vary": _header("What an answer depends on besides its address.", const=envelope.HEADERS["Vary"]),
    "Via": _header("The front end, a gateway to the workers, names itself.", const=envelope.HEADERS["Via"]),
    "Connection": _header("Whether the connection is kept."),
    "Date": _header("When the answer was made."),
    "Server": _header("The server, without a version."),
    "Transfer-Encoding": _header("`chunked`."),
    "WWW-Authenticate": _header("The scheme in which a key is sent.", const="Bearer"),
    "Allow": _header(
        "The methods that this path takes.", pattern="^(DELETE|GET|HEAD|PATCH|POST)(, (DELETE|GET|HEAD|PATCH|POST))*$"
    ),
    "Retry-After": _header("In how many seconds to ask again.", pattern="^[1-9][0-9]*$"),
    "Location": _header("Where what was made is read.", pattern="^/v1/(batches|reversals|webhooks)/[1-9][0-9]*$"),
    "Idempotency-Replayed": _header(
        "`true` when the batch had been issued, or the reversal done, before this call: the answer is the first call's "
        "again.",
        required=False,
        const="true",
    ),
} | {name: _header("Keeps the page to itself.", const=value) for name, value in SECURITY.items()}
