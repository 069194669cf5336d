"""By which scheme a caller reaches the service."""

from collections.abc import Mapping
from typing import Any


def is_https(environ: Mapping[str, Any]) -> bool:
    """Tell whether the caller of a WSGI request uses https; a proxy that ends TLS says so in a header.

    Behind several proxies the first value is the caller's own. Any caller is believed: who fakes the header only gets
    a cookie or a link for https.
    """
    first = str(environ.get("HTTP_X_FORWARDED_PROTO", "")).partition(",")[0]
    return environ.get("wsgi.url_scheme") == "https" or first.strip().lower() == "https"
