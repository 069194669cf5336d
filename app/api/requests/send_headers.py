"""The headers of send and reverse: the idempotency key, and whether the caller waits."""

from urllib.request import parse_http_list

from flask import request

from app.batches.accept import IDEMPOTENCY_KEY
from app.errors import InvalidRequest


def idempotency_key() -> str | None:
    """Return the `Idempotency-Key` of the request, or None.

    Raises:
        InvalidRequest: it is not 1 to 255 visible ASCII characters.
    """
    key = request.environ.get("HTTP_IDEMPOTENCY_KEY")
    if key is None or IDEMPOTENCY_KEY.fullmatch(key):
        return key
    seen = f"it has {len(key)}" if not 1 <= len(key) <= 255 else "it has other characters"
    sentence = f"The Idempotency-Key must be 1 to 255 visible ASCII characters, but {seen}."
    raise InvalidRequest({"idempotency_key": [sentence]})


def wants_no_wait() -> bool:
    """Tell whether the caller prefers not to wait (RFC 7240: `Prefer: respond-async`, in upper or lower case)."""
    preferences = request.environ.get("HTTP_PREFER")
    return preferences is not None and any(
        preference.partition(";")[0].strip() == "respond-async" for preference in parse_http_list(preferences.lower())
    )
