"""The headers of answers, described once and referred to by name."""

from typing import Any

from app.api import envelope
from app.api.docs import SECURITY

# On answers of every status.
EVERYWHERE = ("X-Request-Id", *envelope.HEADERS, "RateLimit", "RateLimit-Policy", "Content-Encoding")
KEY = {
    "type": "http",
    "scheme": "bearer",
    "bearerFormat": "pts_live_… or pts_dev_…",
    "description": "`Authorization: Bearer <key>`. A key is shown once, when it is made, and can be revoked at once.",
}

PLATFORM_KEY = KEY | {
    "bearerFormat": "pts_platform_…",
    "description": "`Authorization: Bearer <key>`, with a key of the platform that runs the service, bound to scopes.",
}


def _header(description: str, *, required: bool = True, **schema: Any) -> dict[str, Any]:
    # Always a string, so that a validator need not convert the header first.
    return {"description": description, "required": required, "schema": {"type": "string", **schema}}


HEADERS = {
    "X-Request-Id": _header(
        "The id of this request; quote it when you report a problem. The caller's own id is kept if it has 1 to 128 "
        "characters of letters, digits and `._:/+=@-`, and holds no key.",
        pattern="^[A-Za-z0-9._:/+=@-]{1,128}$",
    ),
    "Cache-Control": _header("No cache may keep an answer.", const=envelope.HEADERS["Cache-Control"]),
    "Vary": _header("What an answer depends on besides its URL.", const=envelope.HEADERS["Vary"]),
    "Via": _header("The front end, a gateway to the workers, names itself.", const=envelope.HEADERS["Via"]),
    "RateLimit": _header(
        "What is left of the key's calls, on answers of `/v1`, unless the limit is off.",
        required=False,
        pattern='^"key";r=[0-9]+$',
    ),
    "RateLimit-Policy": _header(
        "How many calls a key may make (`q`) in how many seconds (`w`).",
        required=False,
        pattern='^"key";q=[1-9][0-9]*;w=[1-9][0-9]*$',
    ),
    "Content-Encoding": _header(
        "`gzip`, if the caller takes it and the answer has more than 1 kB.", required=False, const="gzip"
    ),
    "Preference-Applied": _header(
        "The preference that was applied: `respond-async`, or the seconds that the call would have waited.",
        required=False,
        pattern="^(respond-async|wait=[0-9.]+)$",
    ),
    "Connection": _header("Whether the connection is kept."),
    "Date": _header("When the answer was made."),
    "Server": _header("The server, without a version."),
    "Transfer-Encoding": _header("`chunked`."),
    "WWW-Authenticate": _header("The scheme for sending a key.", const="Bearer"),
    "Allow": _header(
        "The methods that this path takes.", pattern="^(DELETE|GET|HEAD|PATCH|POST)(, (DELETE|GET|HEAD|PATCH|POST))*$"
    ),
    "Retry-After": _header("After how many seconds to ask again.", pattern="^[1-9][0-9]*$"),
    "Location": _header(
        "The path of what is new: a batch, a reversal, a webhook, a user or an organization.",
        pattern="^/v1/(batches|reversals|webhooks|platform/users|platform/organizations)/[1-9][0-9]*$",
    ),
    "Idempotency-Replayed": _header(
        "`true` if it was done before this call: the answer shows it as it was then.",
        required=False,
        const="true",
    ),
} | {name: _header("Protects the page.", const=value) for name, value in SECURITY.items()}
