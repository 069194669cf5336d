"""The head of a request, checked before the application sees it: what is ambiguous is refused."""

import re
from typing import Any

from gunicorn.http.errors import ParseException

# Header names as gunicorn writes them.
_KEY_HEADER, _NEARLY_KEY_HEADER = "IDEMPOTENCY-KEY", {"IDEMPOTENCYKEY", "XIDEMPOTENCYKEY"}
# RFC 9112, 3.2: a name or an address, and perhaps a port. A comma would make two hosts of it.
_HOST = re.compile(r"(\[[0-9A-Fa-f:.]+\]|[A-Za-z0-9._~%!$&'()*+;=-]+)(:[0-9]{0,5})?")
_TRAILER = re.compile(rb"[!#$%&'*+.^_`|~0-9A-Za-z-]+:[^\x00-\x08\x0a-\x1f\x7f]*")


class HeadError(ParseException):
    """A head that is ambiguous, with the field of the fault."""

    def __init__(self, field: str, sentence: str) -> None:
        super().__init__(sentence)
        self.faults = {field: [sentence]}


def require_clear_head(request: Any) -> None:
    """Refuse what two programs could read differently, and drop what the application must not see.

    Args:
        request: gunicorn's, whose `headers` are pairs of a name in capitals and a value.

    Raises:
        HeadError: the head is ambiguous.
    """
    _require_clear_key(request)
    hosts = [value for name, value in request.headers if name == "HOST"]
    if (not hosts and request.version >= (1, 1)) or not all(map(_HOST.fullmatch, hosts)):
        raise HeadError("request", "The request must have a Host header with one name or address.")
    for name, value in request.headers:
        # gunicorn would take gzip off the list and give the application what is still compressed.
        if name == "TRANSFER-ENCODING" and value.lower() != "chunked":
            raise HeadError("request", "The Transfer-Encoding must be chunked and nothing else.")
    # WSGI makes one name of `A-B` and `A_B`.
    request.headers = [header for header in request.headers if "_" not in header[0]]
    # gunicorn would refuse a trailer that is named like some headers, and keep the others.
    request.parse_headers = _drop_trailers


def _require_clear_key(request: Any) -> None:
    """Refuse an idempotency key that comes several times, or under a misspelled name.

    If the key were overlooked, a repeated send would be issued twice.
    """
    names = [name for name, _ in request.headers]
    for name in names:
        if "IDEMPOTENCY" in name and name != _KEY_HEADER and re.sub("[-_]", "", name) in _NEARLY_KEY_HEADER:
            sentence = f"The header must be spelled Idempotency-Key, but it is spelled {name.title()}."
            raise HeadError("idempotency_key", sentence)
    # WSGI would join the values to another key.
    if names.count(_KEY_HEADER) > 1:
        raise HeadError("idempotency_key", "The Idempotency-Key must be sent once, but came several times.")


def _drop_trailers(lines: bytes, *, from_trailer: bool) -> list[tuple[str, str]]:
    """Drop the trailers behind the last chunk, whatever their names: none may do what a header does (RFC 9110, 6.5.1).

    Raises:
        HeadError: a line is no trailer.
    """
    if not all(map(_TRAILER.fullmatch, lines.split(b"\r\n"))):
        raise HeadError("request", "The chunks of the body are not well-formed.")
    return []
