"""What the headers of a request say of it: its id, and by which scheme its caller reaches the service."""

import os
import re
from collections.abc import Mapping
from hashlib import sha256
from typing import Any

# What follows ^ and precedes $ in JSON Schema too.
REQUEST_ID = "[A-Za-z0-9._:/+=@-]{1,128}"

# Never an API key, even if a caller sends it: request ids are logged and sent to workers.
_USABLE = re.compile(rf"(?!.*pts_(?:live|dev|platform)_){REQUEST_ID}\Z")


def is_request_id(text: str) -> bool:
    """Tell whether a text can be the id of a request."""
    return _USABLE.match(text) is not None


def request_id_of(given: str | None) -> str:
    """Return the id of a request: the given `X-Request-Id` if it is acceptable, else a new id."""
    return given if given and is_request_id(given) else os.urandom(16).hex()


def trace_id_of(request_id: str) -> str:
    """Return a request's id for logs, tasks and lists, which hold no address: an id with an @ becomes its SHA-256."""
    return sha256(request_id.encode()).hexdigest()[:32] if "@" in request_id else request_id


def is_https(environ: Mapping[str, Any]) -> bool:
    """Tell whether the caller of a WSGI request uses https; a proxy that ends TLS says so in a header.

    Behind several proxies the first value is the caller's own. Any caller is believed: who fakes the header only gets
    a cookie or a link for https.
    """
    first = str(environ.get("HTTP_X_FORWARDED_PROTO", "")).partition(",")[0]
    return environ.get("wsgi.url_scheme") == "https" or first.strip().lower() == "https"
