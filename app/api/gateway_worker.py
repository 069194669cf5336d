"""The web process below the application: a caller's connection, and the envelope for what never becomes a request."""

import logging
import socket
import time
import uuid
from functools import partial
from selectors import EVENT_READ
from typing import Any

import orjson
from gunicorn.glogging import Logger
from gunicorn.http.errors import LimitRequestHeaders, LimitRequestLine, ParseException
from gunicorn.util import http_date, write_nonblock
from gunicorn.workers.gthread import ThreadWorker
from structlog.contextvars import clear_contextvars

from app import logs
from app.metrics.requests import NO_ROUTE, count_request
from app.settings import misspelt_settings, settings

# A caller who begins a request has this long to end it; 8 MiB in that time is a slow line.
_READ_DEADLINE_S = 20.0
# One who does not read its answer is waited for this long at a time.
_SEND_TIMEOUT_S = 30.0

# Of a body that nobody wanted to read, so many times the limit of bodies is read and thrown away.
_DISCARDED_BODIES = 4
# As gunicorn spells it.
_ONCE = "IDEMPOTENCY-KEY"

_log = logs.logger()


class _TwiceError(ParseException):
    """A header that must be sent once came several times."""


class _Connection(socket.socket):
    """A caller's socket that cannot hold a thread for ever: gunicorn reads it blocking, here up to a deadline.

    Each request begins with `setblocking(True)`, which sets the deadline anew.
    """

    _deadline = 0.0

    def setblocking(self, flag: bool, /) -> None:  # The signature is the socket's.
        self._deadline = time.monotonic() + _READ_DEADLINE_S
        super().settimeout(_SEND_TIMEOUT_S if flag else 0.0)

    def recv(self, size: int, flags: int = 0, /) -> bytes:
        if self.gettimeout() == 0.0:
            return super().recv(size, flags)
        # A caller that goes quiet, or drips a byte at a time, has closed its connection as far as we care.
        remaining = self._deadline - time.monotonic()
        if remaining <= 0:
            return b""
        super().settimeout(remaining)
        try:
            return super().recv(size, flags)
        except TimeoutError:
            return b""
        finally:
            super().settimeout(_SEND_TIMEOUT_S)


class GatewayLogger(Logger):
    """gunicorn's log, without handlers of its own: its lines go the way of all others."""

    def setup(self, cfg: Any) -> None:
        self.error_log = logging.getLogger("gunicorn")  # By its own name, good news would say “error”.
        super().setup(cfg)
        logs.configure("web", log_format=settings().log_format)
        for name, meant in misspelt_settings():
            _log.warning("setting_not_known", name=name, meant=meant)
        for log in (self.error_log, self.access_log):
            log.handlers.clear()
            log.propagate = True


class GatewayWorker(ThreadWorker):
    """gunicorn's thread worker, answering in the envelope also what is not HTTP enough for Flask to see."""

    def enqueue_req(self, conn: Any) -> None:
        """Give a new connection its deadline, and no thread before it has said something."""
        if isinstance(conn.sock, _Connection):
            super().enqueue_req(conn)
            return
        conn.sock = _Connection(fileno=conn.sock.detach())
        conn.sock.setblocking(False)
        conn.timeout = time.monotonic() + _READ_DEADLINE_S
        self.pending_conns.append(conn)
        self.poller.register(conn.sock, EVENT_READ, partial(self.on_pending_socket_readable, conn))

    def _cap_keepalive(self, deadline: float) -> None:
        """Let who has not said anything yet hold up the end of this process no longer than who is kept alive."""
        super()._cap_keepalive(deadline)
        for conn in self.pending_conns:
            conn.timeout = min(conn.timeout, deadline)

    def handle_request(self, req: Any, conn: Any) -> Any:
        """Refuse what WSGI would make another key of: two lines of a header that come as one value."""
        if sum(name == _ONCE for name, _ in req.headers) > 1:
            raise _TwiceError
        return super().handle_request(req, conn)

    def handle_error(self, req: Any, client: Any, addr: Any, exc: BaseException) -> None:
        """Answer 400 to bytes that are no request. gunicorn's own answer is a page of HTML."""
        clear_contextvars()
        if not isinstance(exc, ParseException):  # A fault of ours, below Flask: let gunicorn say what it was.
            super().handle_error(req, client, addr, exc)
            return
        count_request(*NO_ROUTE, 400, 0.0)
        _log.warning("not_a_request", status=400, error=type(exc).__name__)
        field = "idempotency_key" if isinstance(exc, _TwiceError) else "request"
        faults = {field: [self._sentence(exc)]}
        body = orjson.dumps({"success": False, "data": None, "errors": faults, "additional_data": None})
        head = (
            f"HTTP/1.1 400 Bad Request\r\nServer: gunicorn\r\nDate: {http_date()}\r\nConnection: close\r\n"
            "Transfer-Encoding: chunked\r\nContent-Type: application/json\r\nCache-Control: no-store, private\r\n"
            f"Vary: Accept, Authorization\r\nVia: 1.1 points\r\nX-Request-Id: {uuid.uuid4().hex}\r\n\r\n"
        )
        try:
            write_nonblock(client, head.encode() + b"%x\r\n%b\r\n0\r\n\r\n" % (len(body), body))
        except OSError:
            return  # The peer was gone before it could be answered.

    def _sentence(self, error: ParseException) -> str:
        """Say what is wrong. The contract has no status of its own for what is too long (414, 431)."""
        if isinstance(error, _TwiceError):
            return "The Idempotency-Key must be sent once, but came several times."
        if isinstance(error, LimitRequestLine):
            return f"The request line must have at most {self.cfg.limit_request_line} bytes, but has more."
        if isinstance(error, LimitRequestHeaders):
            lines, size = self.cfg.limit_request_fields, self.cfg.limit_request_field_size
            return f"The headers must be at most {lines}, of at most {size} bytes each, but are more."
        return "The bytes sent are not a well-formed HTTP request."

    def _keepalive_after(self, conn: Any, keepalive: bool) -> bool:
        """Read what the application left of a body; tell whether the connection can take another request.

        The request is answered by now, but many callers write all of it before they read: were the connection closed
        under them, they would see that, and not the answer.
        """
        deadline = time.monotonic() + _READ_DEADLINE_S
        try:
            is_read = conn.parser.finish_body(
                deadline=deadline, max_bytes=_DISCARDED_BODIES * settings().body_bytes_max
            )
        except ParseException:  # Its chunks are none: where the next request begins is unknown.
            return False
        return keepalive and is_read and time.monotonic() < deadline
