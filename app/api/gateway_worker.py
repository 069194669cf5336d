"""The web process below the application: its log, and the envelope for what never becomes a request."""

import logging
from typing import Any

from gunicorn.glogging import Logger
from gunicorn.http.errors import LimitRequestHeaders, LimitRequestLine, ParseException
from gunicorn.util import http_date, write_nonblock
from structlog.contextvars import clear_contextvars

from app import logs
from app.api import envelope
from app.api.gateway_connection import ConnectionWorker
from app.api.record import request_id_of, trace_id_of
from app.metrics.requests import NO_ROUTE, count_request
from app.settings import misspelt_settings, settings

# As gunicorn spells it.
_ONCE = "IDEMPOTENCY-KEY"

_log = logs.logger()


class _TwiceError(ParseException):
    """A header that must be sent once came several times."""


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


class GatewayWorker(ConnectionWorker):
    """gunicorn's thread worker, answering in the envelope also what is not HTTP enough for Flask to see."""

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
        request_id = request_id_of(None if req is None else dict(req.headers).get("X-REQUEST-ID"))
        count_request(*NO_ROUTE, 400, 0.0)
        _log.warning("not_a_request", status=400, error=type(exc).__name__, request_id=trace_id_of(request_id))
        field = "idempotency_key" if isinstance(exc, _TwiceError) else "request"
        faults = {field: [self._sentence(exc)]}
        body = envelope.failure_document(faults)
        headers = envelope.HEADERS | {
            "Server": "gunicorn",
            "Date": http_date(),
            "Connection": "close",
            "Transfer-Encoding": "chunked",
            "Content-Type": "application/json",
            "X-Request-Id": request_id,
        }
        lines = ["HTTP/1.1 400 Bad Request", *(f"{name}: {value}" for name, value in headers.items()), "", ""]
        try:
            write_nonblock(client, "\r\n".join(lines).encode() + b"%x\r\n%b\r\n0\r\n\r\n" % (len(body), body))
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
            return f"The request must have at most {lines} headers of at most {size} bytes each, but has more."
        return "The bytes sent are not a well-formed HTTP request."
