"""The network of webhooks: each connection goes to a checked address, and one deadline ends all steps of an attempt.

httpcore asks this module for each connection. It resolves the name, checks the addresses and connects to one of them,
so it does not matter if the name resolves differently afterwards. TLS still checks the name.
"""

import ssl
import time
from collections.abc import Iterable
from typing import Any

import httpcore

from app.webhooks.allowed_receivers import Receiver, resolve


class AnswerTooLong(Exception):
    """The receiver's response is longer than the limit on what is read."""


class Bounds:
    """When the present attempt ends, and how many bytes of its response may still be read."""

    def __init__(self) -> None:
        self._ends_at = 0.0
        self._bytes_left = 0

    def set(self, *, seconds: float, answer_bytes: int) -> None:
        self._ends_at = time.monotonic() + seconds
        self._bytes_left = answer_bytes

    def bytes_left(self) -> int:
        """Return how many bytes may still be read.

        Raises:
            AnswerTooLong: the limit is reached.
        """
        if self._bytes_left <= 0:
            raise AnswerTooLong
        return self._bytes_left

    def count(self, read: int) -> None:
        self._bytes_left -= read

    def left_s(self) -> float:
        """Return the seconds left until the deadline.

        Raises:
            httpcore.ReadTimeout: the deadline has passed.
        """
        left = self._ends_at - time.monotonic()
        if left <= 0:
            raise httpcore.ReadTimeout
        return left


class CheckedNetwork(httpcore.NetworkBackend):
    """Connects to the first of the receiver's checked addresses that answers, and counts its connections."""

    def __init__(self, receiver: Receiver, bounds: Bounds) -> None:
        self._receiver = receiver
        self._bounds = bounds
        self._sockets = httpcore.SyncBackend()
        self.connections = 0

    def connect_tcp(
        self,
        host: str,
        port: int,
        timeout: float | None = None,
        local_address: str | None = None,
        socket_options: Iterable[httpcore.SOCKET_OPTION] | None = None,
    ) -> httpcore.NetworkStream:
        """Connect to `host`, which is the receiver's.

        Raises:
            ReceiverRefused: an address of its name may not be called.
            httpcore.ConnectError, httpcore.ConnectTimeout, httpcore.ReadTimeout: no address answers in time.
        """
        assert (host, port) == (self._receiver.host, self._receiver.port), "there are no redirects and no proxies"
        self.connections += 1
        *others, last = resolve(self._receiver, timeout_s=self._bounds.left_s())
        for address in others:
            try:
                return self._connect(str(address), port, self._bounds.left_s() / 2)
            except (httpcore.ConnectError, httpcore.ConnectTimeout):
                continue
        return self._connect(str(last), port, self._bounds.left_s())

    def _connect(self, address: str, port: int, timeout_s: float) -> httpcore.NetworkStream:
        options: list[Any] = []
        return _Stream(self._sockets.connect_tcp(address, port, timeout_s, socket_options=options), self._bounds)


class _Stream(httpcore.NetworkStream):
    """A connection whose steps all end with the attempt: with a limit per step, a slow receiver could drip on."""

    def __init__(self, stream: httpcore.NetworkStream, bounds: Bounds) -> None:
        self._stream = stream
        self._bounds = bounds

    def read(self, max_bytes: int, timeout: float | None = None) -> bytes:
        read = self._stream.read(min(max_bytes, self._bounds.bytes_left()), self._bounds.left_s())
        self._bounds.count(len(read))
        return read

    def write(self, buffer: bytes, timeout: float | None = None) -> None:
        self._stream.write(buffer, self._bounds.left_s())

    def start_tls(
        self, ssl_context: ssl.SSLContext, server_hostname: str | None = None, timeout: float | None = None
    ) -> httpcore.NetworkStream:
        return _Stream(self._stream.start_tls(ssl_context, server_hostname, self._bounds.left_s()), self._bounds)

    def close(self) -> None:
        self._stream.close()

    def get_extra_info(self, info: str) -> Any:
        return self._stream.get_extra_info(info)
