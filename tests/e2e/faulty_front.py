"""A gateway before the running service that does to a send what one of its kinds says: bytes, not polite HTTP."""

import contextlib
import http.client
import socket
import struct
import threading
from collections import Counter
from collections.abc import Callable, Mapping
from typing import NamedTuple

HTML = b"<html><h1>Something else</h1></html>"
JSON = "application/json"
_SERVICE_TIMEOUT_S = 60


class Request(NamedTuple):
    """A request as it came."""

    method: str
    path: str
    headers: Mapping[str, str]
    body: bytes


class Wire:
    """The connection to the client, and the way to the service."""

    def __init__(self, connection: socket.socket, service_port: int) -> None:
        self.connection, self._port = connection, service_port
        self.is_open = True

    def passed_on(self, request: Request) -> bytes:
        """Pass a request on, and return the whole answer as bytes; its end is that of its length."""
        service = http.client.HTTPConnection("127.0.0.1", self._port, timeout=_SERVICE_TIMEOUT_S)
        try:
            self.deliver(service, request)
            answer = service.getresponse()
            return answered(answer.status, answer.read(), dict(answer.getheaders()))
        finally:
            service.close()

    def deliver(self, service: http.client.HTTPConnection, request: Request) -> None:
        dropped = ("host", "connection", "content-length")
        headers = {name: value for name, value in request.headers.items() if name not in dropped}
        service.request(request.method, request.path, body=request.body, headers=headers | {"Connection": "close"})

    def delivered_only(self, request: Request) -> None:
        """Pass a request on, and do not wait for the answer."""
        service = http.client.HTTPConnection("127.0.0.1", self._port, timeout=_SERVICE_TIMEOUT_S)
        self.deliver(service, request)
        service.close()

    def send(self, content: bytes) -> None:
        with contextlib.suppress(OSError):
            self.connection.sendall(content)

    def close(self) -> None:
        self.is_open = False

    def reset(self) -> None:
        """Close the connection at once, without a word."""
        self.connection.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
        self.close()

    def hang(self) -> None:
        """Say nothing until the client has gone away."""
        self.connection.settimeout(_SERVICE_TIMEOUT_S)
        with contextlib.suppress(OSError):
            self.connection.recv(1)
        self.close()


Kind = Callable[[Wire, Request], None]
_KEPT = ("idempotency-replayed", "retry-after", "content-type", "content-encoding", "x-request-id", "location")


def answered(
    status: int, content: bytes, headers: Mapping[str, str] | None = None, *, length: int | None = -1
) -> bytes:
    """Return an answer; with its own length, another, or (None) none."""
    lines = [f"HTTP/1.1 {status} Status"]
    lines += [f"{name}: {value}" for name, value in (headers or {}).items() if name.lower() in _KEPT]
    if length is not None:
        lines.append(f"Content-Length: {len(content) if length == -1 else length}")
    return "\r\n".join(lines).encode() + b"\r\n\r\n" + content


class FaultyFront:
    """Passes calls on to a service, and does to the first sends with a key of `faults` what it says there.

    `times` is how many those are, and `seen` counts them. A connection may carry several calls, as a real gateway's.
    """

    def __init__(self, service_port: int, faults: Mapping[str, Kind], *, times: int = 1) -> None:
        self.seen: Counter[str] = Counter()
        self._port, self._faults, self._times = service_port, faults, times
        self._lock = threading.Lock()
        self._listener = socket.create_server(("127.0.0.1", 0), backlog=128)
        self.url = f"http://127.0.0.1:{self._listener.getsockname()[1]}"
        self._thread = threading.Thread(target=self._listen, daemon=True)

    def __enter__(self) -> "FaultyFront":
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._listener.close()

    def _listen(self) -> None:
        with contextlib.suppress(OSError):  # It is closed.
            while True:
                connection, _ = self._listener.accept()
                threading.Thread(target=self._serve, args=(connection,), daemon=True).start()

    def _serve(self, connection: socket.socket) -> None:
        wire = Wire(connection, self._port)
        with connection, contextlib.suppress(OSError, http.client.HTTPException), connection.makefile("rb") as reader:
            while wire.is_open and (request := _read(reader)) is not None:
                fault = self._next(request)
                if fault is None:
                    wire.send(wire.passed_on(request))
                else:
                    fault(wire, request)

    def _next(self, request: Request) -> Kind | None:
        key = request.headers.get("idempotency-key", "")
        with self._lock:
            if not request.path.endswith("/send") or key not in self._faults or self.seen[key] == self._times:
                return None
            self.seen[key] += 1
        return self._faults[key]


def _read(reader: "socket.SocketIO | object") -> Request | None:
    line: bytes = reader.readline()  # type: ignore[union-attr]
    if not line.strip():
        return None
    method, path, _ = line.decode().split(" ", 2)
    headers = {}
    while line := reader.readline().strip():  # type: ignore[union-attr]
        name, _, value = line.decode().partition(":")
        headers[name.lower()] = value.strip()
    return Request(method, path, headers, reader.read(int(headers.get("content-length", 0))))  # type: ignore[union-attr]
