"""How gunicorn runs the application: its settings, and the envelope for what never becomes a request.

Start it with `gunicorn --config python:app.api.gateway`. gunicorn's own environment variables
(`WEB_CONCURRENCY`, `GUNICORN_CMD_ARGS`) change the number of processes, the address and the rest.
"""

import gc
import logging
import os
import socket
import time
import uuid
from collections import Counter
from typing import Any

import orjson
from gunicorn.glogging import Logger
from gunicorn.http.errors import LimitRequestHeaders, LimitRequestLine, ParseException
from gunicorn.util import http_date, write_nonblock
from gunicorn.workers.gthread import ThreadWorker
from structlog.contextvars import clear_contextvars

from app import logs
from app.api import create_app
from app.connections import answer_callers, forget_connections_of_the_parent
from app.errors import SettingsError
from app.metrics import processes
from app.metrics.requests import NO_ROUTE, count_request, watch_connections
from app.settings import settings

try:
    settings()
except SettingsError as error:
    # The master checks them too: the start ends with the sentence, not with a worker's trace.
    raise SystemExit(f"points: {error}") from None

# A caller who begins a request has this long to end it; 8 MiB in that time is a slow line.
_READ_DEADLINE_S = 20.0
# One who does not read its answer is waited for this long at a time.
_SEND_TIMEOUT_S = 30.0

_log = logs.logger()

# Of a body that nobody wanted to read, so many times the limit of bodies is read and thrown away.
_DISCARDED_BODIES = 4


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
        self.error_log = logging.getLogger(
            "gunicorn"
        )  # Its own name for it ends in “error”, also in a line of good news.
        super().setup(cfg)
        logs.configure("web", log_format=settings().log_format)
        for log in (self.error_log, self.access_log):
            log.handlers.clear()
            log.propagate = True


class GatewayWorker(ThreadWorker):
    """gunicorn's thread worker, answering in the envelope also what is not HTTP enough for Flask to see."""

    def enqueue_req(self, conn: Any) -> None:
        """Give a new connection its deadline before a thread takes it."""
        if not isinstance(conn.sock, _Connection):
            conn.sock = _Connection(fileno=conn.sock.detach())
            conn.sock.setblocking(False)
        super().enqueue_req(conn)

    def handle_error(self, req: Any, client: Any, addr: Any, exc: BaseException) -> None:
        """Answer 400 to bytes that are no request. gunicorn's own answer is a page of HTML."""
        clear_contextvars()
        if not isinstance(exc, ParseException):  # A fault of ours, below Flask: let gunicorn say what it was.
            super().handle_error(req, client, addr, exc)
            return
        count_request(*NO_ROUTE, 400, 0.0)
        _log.warning("not_a_request", status=400, error=type(exc).__name__)
        faults = {"request": [self._sentence(exc)]}
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


# gunicorn's settings, under the names it gives them.
wsgi_app = "app.api.gateway:application()"
worker_class = GatewayWorker
bind = "127.0.0.1:8000"
workers = int(os.environ.get("WEB_CONCURRENCY", "2"))
# Threads must outnumber the requests that wait: one that waits holds a thread and nothing else.
threads = 64
worker_connections = 1_000
# A kept connection spares the next call a handshake.
keepalive = 30
# On SIGTERM, requests that wait are let finish: nobody's answer is cut off.
graceful_timeout = int(settings().wait_s) + 5
timeout = int(settings().wait_s) + 30
accesslog = None
logger_class = GatewayLogger
control_socket_disable = True


def on_starting(server: Any) -> None:
    """Before the processes are forked, so that all of them count into one directory."""
    processes.share()


# So many new objects, not Python's 700, before the collector looks for those that nobody needs.
_COLLECT_AFTER = 20_000


def pre_fork(server: Any, worker: Any) -> None:
    """In the master, who knows to which cores its other processes keep."""
    worker.core = _core_beside(server)


def _core_beside(server: Any) -> int | None:
    """Choose the core for one more process of this server, or none: where there are more cores than processes.

    Python runs one of its threads at a time, so a second core is of no use to a process, and one that it is
    moved to has nothing of it in its caches, which is most of what a request costs (decision 14). Only where
    cores are left over shall the system choose: it knows which are busy, or slow.
    """
    if not hasattr(os, "sched_setaffinity"):  # macOS.
        return None
    cores = os.sched_getaffinity(0)
    if len(cores) > server.num_workers:
        return None
    kept_to = Counter(other.core for other in server.WORKERS.values())
    return min(sorted(cores), key=lambda core: kept_to[core])


def post_fork(server: Any, worker: Any) -> None:
    forget_connections_of_the_parent()
    answer_callers()
    if worker.core is not None:
        os.sched_setaffinity(0, {worker.core})
    processes.take_slot()
    watch_connections()
    logs.output.write_together()


def worker_exit(server: Any, worker: Any) -> None:
    logs.output.flush()


def child_exit(server: Any, worker: Any) -> None:
    processes.forget(worker.pid)


def on_exit(server: Any) -> None:
    processes.remove()


def application() -> Any:
    app = create_app()
    # What is there now stays: the collector need not go through it again and again while callers wait. With both,
    # a process used 5 to 8 % less CPU time for a request.
    gc.freeze()
    gc.set_threshold(_COLLECT_AFTER)
    return app
