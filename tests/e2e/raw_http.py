"""A caller that sends any bytes it likes, and reads what comes back: the answer, and whether only one came."""

import contextlib
import socket
import time
from collections.abc import Sequence
from dataclasses import dataclass
from http.client import HTTPMessage, HTTPResponse

# Longer than any answer may take, so that a slow one is measured and not cut off.
_READ_TIMEOUT_S = 30


@dataclass(frozen=True, kw_only=True)
class Answer:
    """One answer; `version` is 10 or 11, `rest` what else came, `elapsed_s` runs from the first byte sent."""

    status: int
    version: int
    headers: HTTPMessage
    body: bytes
    rest: bytes
    elapsed_s: float


def exchange(port: int, request: bytes, *, then_close: bool = False) -> Answer:
    """Send a request, read its answer, say that nothing more will come, and read what is still sent.

    With `then_close` it is said before the answer is read, as by a caller who goes away.
    """
    method = request.split(b" ", 1)[0].decode("latin-1")
    with socket.create_connection(("127.0.0.1", port), timeout=_READ_TIMEOUT_S) as connection:
        started = time.monotonic()
        # A server may answer and close before all is sent; its answer is there all the same.
        with contextlib.suppress(ConnectionError):
            connection.sendall(request)
            if then_close:
                connection.shutdown(socket.SHUT_WR)
        return _answer_of(connection, method, started)


def _answer_of(connection: socket.socket, method: str, started: float) -> Answer:
    with contextlib.closing(HTTPResponse(connection, method=method)) as response:
        response.begin()
        body = response.read()
        elapsed_s = time.monotonic() - started
        rest = _read_to_the_end(connection)
        return Answer(
            status=response.status,
            version=response.version,
            headers=response.msg,
            body=body,
            rest=rest,
            elapsed_s=elapsed_s,
        )


def _read_to_the_end(connection: socket.socket) -> bytes:
    rest = b""
    with contextlib.suppress(OSError):  # The server may have closed already.
        connection.shutdown(socket.SHUT_WR)
        while chunk := connection.recv(65_536):
            rest += chunk
    return rest


def first_bytes(port: int, request: bytes) -> bytes:
    """Send a request, or the head of one, and return what comes first, without sending more."""
    with socket.create_connection(("127.0.0.1", port), timeout=_READ_TIMEOUT_S) as connection:
        connection.sendall(request)
        return connection.recv(65_536)


def exchange_slowly(port: int, pieces: Sequence[bytes], *, pause_s: float) -> Answer:
    """Send the pieces of a request with pauses between them, and read its answer."""
    with socket.create_connection(("127.0.0.1", port), timeout=2 * _READ_TIMEOUT_S) as connection:
        started = time.monotonic()
        for place, piece in enumerate(pieces):
            time.sleep(pause_s if place else 0)
            connection.sendall(piece)
        return _answer_of(connection, "POST", started)
