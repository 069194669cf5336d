"""gunicorn's worker with our additions: the log, slow callers, and bytes that are not a request."""

import contextlib
import logging
import re
import time
from email.utils import formatdate
from http import HTTPStatus
from typing import Any

from gunicorn.glogging import Logger
from gunicorn.http.errors import (
    InvalidResponseHeader,
    InvalidResponseHeaderName,
    LimitRequestHeaders,
    LimitRequestLine,
    ParseException,
)
from structlog.contextvars import clear_contextvars

from app import logs
from app.api import envelope
from app.errors import Faults
from app.metrics.requests import NO_ROUTE, count_request
from app.settings import misspelt_settings, settings
from app.values.headers import request_id_of, trace_id_of
from app.web.arriving import ArrivingWorker

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
    # WSGI makes the same name of `A-B` and `A_B`.
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


# An unread body is read and discarded, up to this many times the limit of a body.
_DISCARDED_BODIES = 4
# How long the caller has to read the last answer of a connection and to close its side.
_LINGER_S = 2.0
# For one that was too slow already: few threads wait for such callers, and there may be many.
_LINGER_TOO_SLOW_S = 0.25
# gunicorn's errors of requests that are errors of our answer.
_OURS = (InvalidResponseHeader, InvalidResponseHeaderName)

_log = logs.logger()


class GatewayLogger(Logger):
    """gunicorn's log, written through `app.logs`."""

    def setup(self, cfg: Any) -> None:
        self.error_log = logging.getLogger("gunicorn")  # gunicorn's own name for it is gunicorn.error.
        super().setup(cfg)
        logs.configure("web", log_format=settings().log_format)
        for name, meant in misspelt_settings():
            _log.warning("setting_not_known", name=name, meant=meant)
        for log in (self.error_log, self.access_log):
            log.handlers.clear()
            log.propagate = True


class GatewayWorker(ArrivingWorker):
    """gunicorn's thread worker, with time limits for callers and every answer in the envelope.

    gunicorn has no setting or hook for either, so three more of its methods are overridden: `handle` (a thread takes a
    request from a connection), `handle_request` (answers it) and `handle_error` (answers bytes that are not a request).
    They use a connection's `sock`, `data_ready` and `close`.
    """

    def handle(self, conn: Any) -> Any:
        """Take a request from a connection, and close the connection if it was the last.

        gunicorn would close it in the main thread, which could block every caller for two seconds.
        """
        conn.data_ready = True  # Else gunicorn waits in a selector.
        kept = super().handle(conn)
        if not kept:
            conn.sock.read_until = time.monotonic() + (_LINGER_TOO_SLOW_S if conn.sock.is_too_slow else _LINGER_S)
            with contextlib.suppress(OSError):  # Already closed.
                conn.close(graceful=True)
        return kept

    def handle_request(self, req: Any, conn: Any) -> bool:
        """Answer a request, and discard the unread part of its body.

        Many callers write the whole body before they read. If we closed the connection first, they would see an error
        instead of the answer.
        """
        conn.sock.begin_answer(req)
        try:
            kept = super().handle_request(req, conn)
        finally:
            conn.sock.end_answer()
        return _discard(req.body) and kept

    def handle_error(self, req: Any, client: Any, addr: Any, exc: BaseException) -> None:
        """Answer 400 to bytes that are not a request, and 500 to a fault in the server itself.

        gunicorn would answer with HTML, and could log an e-mail address.
        """
        clear_contextvars()
        request_id = request_id_of(None if req is None else dict(req.headers).get("X-REQUEST-ID"))
        fields = {"request_id": trace_id_of(request_id), **logs.kind_of(exc)}
        if isinstance(exc, ParseException) and not isinstance(exc, _OURS):
            status, faults = HTTPStatus.BAD_REQUEST, self._faults(exc)
            _log.warning("not_a_request", status=status.value, **fields)
        else:
            sentence = f"Something went wrong on our side. Quote the request id {request_id} when you report it."
            status, faults = HTTPStatus.INTERNAL_SERVER_ERROR, {"service": [sentence]}
            _log.error("request_failed", places=logs.places_of(exc.__traceback__), **fields)
        count_request(*NO_ROUTE, status.value, 0.0)
        with contextlib.suppress(OSError):  # The caller was gone before it could be answered.
            client.sendall(_answer(status, faults, request_id, client.beginning))

    def _faults(self, error: ParseException) -> Faults:
        """Say what is wrong. The contract has no separate statuses for requests that are too long (414, 431)."""
        if isinstance(error, HeadError):
            return error.faults
        sentence = "The bytes sent are not a well-formed HTTP request."
        if isinstance(error, LimitRequestLine):
            sentence = f"The request line must have at most {self.cfg.limit_request_line} bytes, but has more."
        if isinstance(error, LimitRequestHeaders):
            lines, size = self.cfg.limit_request_fields, self.cfg.limit_request_field_size
            sentence = f"The request must have at most {lines} headers of at most {size} bytes each, but has more."
        return {"request": [sentence]}


def _discard(body: Any) -> bool:
    """Read a body to its end; return whether another request may follow."""
    remaining = _DISCARDED_BODIES * settings().body_bytes_max
    try:
        while remaining > 0 and (piece := body.read(65_536)):
            remaining -= len(piece)
    except (ParseException, OSError):  # The start of the next request is unknown.
        return False
    return remaining > 0


def _answer(status: HTTPStatus, faults: Faults, request_id: str, beginning: bytes) -> bytes:
    """Return an error as the bytes to send: the envelope, with the headers that the interface document gives a 400.

    HTTP/1.0 has no chunks (RFC 9112, 6.1), and the answer to a HEAD has no body (RFC 9110, 9.3.2).
    """
    line = beginning.partition(b"\n")[0].rstrip(b"\r")
    version = "1.0" if line.endswith(b" HTTP/1.0") else "1.1"
    is_head = line.startswith(b"HEAD ")
    body = envelope.failure_document(status.value, faults)
    framing = {"Transfer-Encoding": "chunked"}
    if is_head or version == "1.0":
        framing = {"Content-Length": str(len(body))}
    else:
        body = b"%x\r\n%b\r\n0\r\n\r\n" % (len(body), body)
    headers = envelope.HEADERS | {
        "Server": "gunicorn",
        "Date": formatdate(usegmt=True),
        "Connection": "close",
        **framing,
        "Content-Type": "application/json",
        "X-Request-Id": request_id,
    }
    lines = "".join(f"{name}: {value}\r\n" for name, value in headers.items())
    head = f"HTTP/{version} {status.value} {status.phrase}\r\n{lines}\r\n".encode()
    return head if is_head else head + body
