"""A gateway before the running service: it cuts sends off wherever one can be cut, or answers in its stead."""

import http.client
import itertools
import json
import random
import socket
import struct
import threading
import time
from collections import Counter
from collections.abc import Callable, Mapping
from email.utils import formatdate
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any, NamedTuple

PASSED = "passed"


class Answered(NamedTuple):
    """What the service has answered."""

    status: int
    headers: dict[str, str]
    content: bytes


class CuttingFront:
    """Passes sends on to a service on `port`, and does with `often` of them what one of `FAULTS` says; by `seed`."""

    def __init__(self, port: int, *, often: float, seed: int) -> None:
        self.seen: Counter[str] = Counter()
        self._port, self._often = port, often
        self._random = random.Random(seed)  # noqa: S311  # It is to be repeated, not secret.
        self._faults = itertools.cycle(FAULTS)
        self._lock = threading.Lock()
        front = self

        class Handler(BaseHTTPRequestHandler):
            protocol_version = "HTTP/1.1"

            def do_POST(self) -> None:
                body = self.rfile.read(int(self.headers["Content-Length"]))
                FAULTS.get(front.fate(), reply)(front, self, body)

            def log_message(self, *_: object) -> None:
                pass

        class Server(ThreadingHTTPServer):
            request_queue_size = 128

        self._server = Server(("127.0.0.1", 0), Handler)
        self.url = f"http://127.0.0.1:{self._server.server_address[1]}"
        self._thread = threading.Thread(target=self._server.serve_forever, kwargs={"poll_interval": 0.05})

    def __enter__(self) -> "CuttingFront":
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._server.shutdown()
        self._thread.join()
        self._server.server_close()

    def fate(self) -> str:
        """Choose what becomes of a send."""
        with self._lock:
            found = next(self._faults) if self._random.random() < self._often else PASSED
            self.seen[found] += 1
        return found

    def passed_on(self, call: Any, body: bytes) -> Answered:
        """Pass a send on, and return the answer."""
        service = http.client.HTTPConnection("127.0.0.1", self._port, timeout=60)
        try:
            self.deliver(service, call, body)
            answer = service.getresponse()
            return Answered(answer.status, dict(answer.getheaders()), answer.read())
        finally:
            service.close()

    def deliver(self, service: http.client.HTTPConnection, call: Any, body: bytes) -> None:
        headers = {name: value for name, value in call.headers.items() if name.lower() not in ("host", "connection")}
        service.request("POST", call.path, body=body, headers=headers | {"Connection": "close"})


def _not_delivered(_front: CuttingFront, call: Any, _body: bytes) -> None:
    _reset(call)


def _cut_after_the_request(front: CuttingFront, call: Any, body: bytes) -> None:
    """Deliver the request, and be gone before there can be an answer."""
    service = http.client.HTTPConnection("127.0.0.1", front._port, timeout=60)
    front.deliver(service, call, body)
    service.close()
    _reset(call)


def _cut_after_the_commit(front: CuttingFront, call: Any, body: bytes) -> None:
    front.passed_on(call, body)
    _reset(call)


def _cut_in_the_answer(front: CuttingFront, call: Any, body: bytes) -> None:
    """Send half of an answer whose length was told."""
    answered = front.passed_on(call, body)
    _write(call, answered.status, answered.content[: len(answered.content) // 2], length=len(answered.content))
    call.close_connection = True


def _half_a_201(front: CuttingFront, call: Any, body: bytes) -> None:
    """Send half of an answer that ends with the connection, so that it looks whole."""
    answered = front.passed_on(call, body)
    _write(call, answered.status, answered.content[: len(answered.content) // 2], length=None)
    call.close_connection = True


def _limited_in_seconds(_front: CuttingFront, call: Any, _body: bytes) -> None:
    _write(call, 429, b"<html>slow down</html>", headers={"Retry-After": "0"})


def _limited_until(_front: CuttingFront, call: Any, _body: bytes) -> None:
    _write(call, 429, b"<html>slow down</html>", headers={"Retry-After": formatdate(time.time() + 1, usegmt=True)})


def _bad_gateway(front: CuttingFront, call: Any, body: bytes) -> None:
    front.passed_on(call, body)
    _write(call, 502, b"<html><h1>502 Bad Gateway</h1></html>", kind="text/html")


def _away(_front: CuttingFront, call: Any, _body: bytes) -> None:
    _write(call, 503, json.dumps({"success": False, "data": None, "errors": {"service": ["Away."]}}).encode())


def reply(front: CuttingFront, call: Any, body: bytes) -> None:
    """Pass the send on, and the answer back."""
    answered = front.passed_on(call, body)
    kept = {name: value for name, value in answered.headers.items() if name in ("Idempotency-Replayed", "Retry-After")}
    _write(call, answered.status, answered.content, headers=kept)


FAULTS: dict[str, Callable[[CuttingFront, Any, bytes], None]] = {
    "not delivered": _not_delivered,
    "cut after the request": _cut_after_the_request,
    "cut after the commit": _cut_after_the_commit,
    "cut in the answer": _cut_in_the_answer,
    "half a 201": _half_a_201,
    "429 with seconds": _limited_in_seconds,
    "429 with a date": _limited_until,
    "502 with HTML": _bad_gateway,
    "503": _away,
}


def _reset(call: Any) -> None:
    """Close the connection at once, without a word."""
    call.close_connection = True
    call.connection.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
    call.connection.close()


def _write(
    call: Any,
    status: int,
    content: bytes,
    *,
    kind: str = "application/json",
    length: int | None = -1,
    headers: Mapping[str, str] | None = None,
) -> None:
    """Answer; with the length of what is sent, with another, or (None) with an end by the end of the connection."""
    call.send_response(status)
    told = len(content) if length == -1 else length
    for name, value in ({"Content-Type": kind} | dict(headers or {})).items():
        call.send_header(name, value)
    call.send_header(*(("Connection", "close") if told is None else ("Content-Length", str(told))))
    call.end_headers()
    call.wfile.write(content)
