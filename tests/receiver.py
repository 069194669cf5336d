"""A receiver of webhooks on the loopback address, that answers as a test tells it to."""

import contextlib
import json
import socket
import threading
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

from tests.ports import HOST

# What a receiver does with a call that it has read whole: it writes its answer by the handler.
Answer = Callable[[BaseHTTPRequestHandler], None]


@dataclass(frozen=True)
class Call:
    """A call that came: its headers, in small letters, its body as it was sent, and when it had come (monotonic)."""

    headers: dict[str, str]
    body: bytes
    at: float = field(default_factory=time.monotonic)

    @property
    def event(self) -> dict[str, Any]:
        event: dict[str, Any] = json.loads(self.body)
        return event


class _Server(ThreadingHTTPServer):
    daemon_threads = True
    request_queue_size = 128

    def handle_error(self, request: Any, client_address: Any) -> None:
        """Say nothing: a sender that has enough of an answer closes its connection."""


class Receiver:
    """Answers each call by `answer`, which may be changed at any time; it writes down all that came."""

    def __init__(self) -> None:
        self.calls: list[Call] = []
        self.answer: Answer = status(200)
        receiver = self

        class Handler(BaseHTTPRequestHandler):
            protocol_version = "HTTP/1.1"

            def do_POST(self) -> None:
                length = int(self.headers["Content-Length"])
                body = self.rfile.read(length)
                if len(body) < length:
                    # A sender that was killed in the middle of its body has told nothing.
                    self.close_connection = True
                    return
                receiver.calls.append(Call({name.lower(): value for name, value in self.headers.items()}, body))
                receiver.answer(self)

            def log_message(self, *_: Any) -> None:
                """Say nothing."""

        self._server = _Server((HOST, 0), Handler)
        self.port: int = self._server.server_address[1]

    @property
    def url(self) -> str:
        return f"http://{HOST}:{self.port}/hook?x=1"

    @contextlib.contextmanager
    def running(self) -> Iterator["Receiver"]:
        thread = threading.Thread(target=self._server.serve_forever, args=(0.05,), daemon=True)
        thread.start()
        try:
            yield self
        finally:
            self._server.shutdown()
            self._server.server_close()

    @property
    def sequences(self) -> list[int]:
        """The sequences of all calls, in the order in which they came."""
        return [call.event["sequence"] for call in self.calls]


def status(code: int, **headers: str) -> Answer:
    """Answer with a status and no body; `Retry_After="1"` is the header of that name."""

    def answer(handler: BaseHTTPRequestHandler) -> None:
        handler.send_response(code)
        for name, value in headers.items():
            handler.send_header(name.replace("_", "-"), value)
        handler.send_header("Content-Length", "0")
        handler.end_headers()

    return answer


def flood(handler: BaseHTTPRequestHandler) -> None:
    """Answer 200 with ten megabytes."""
    handler.send_response(200)
    handler.send_header("Content-Length", "10000000")
    handler.end_headers()
    with contextlib.suppress(OSError):
        for _ in range(1_000):
            handler.wfile.write(b"x" * 10_000)
    handler.close_connection = True


def close_in_the_middle(handler: BaseHTTPRequestHandler) -> None:
    """Promise a hundred bytes, send three, and close."""
    handler.send_response(200)
    handler.send_header("Content-Length", "100")
    handler.end_headers()
    handler.wfile.write(b"abc")
    handler.wfile.flush()
    handler.connection.shutdown(socket.SHUT_RDWR)
    handler.close_connection = True


def drip(handler: BaseHTTPRequestHandler) -> None:
    """Answer 200 with a body that never ends, a byte now and then."""
    handler.send_response(200)
    handler.send_header("Transfer-Encoding", "chunked")
    handler.end_headers()
    with contextlib.suppress(OSError):
        while True:
            handler.wfile.write(b"1\r\nx\r\n")
            time.sleep(0.2)
    handler.close_connection = True


def hang(handler: BaseHTTPRequestHandler) -> None:
    """Never answer, until the sender gives up."""
    handler.connection.settimeout(60)
    with contextlib.suppress(OSError):
        handler.rfile.read(1)
    handler.close_connection = True
