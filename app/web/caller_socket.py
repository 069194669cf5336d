"""A caller's connection with time limits: a caller that sends or reads too slowly is disconnected."""

import errno
import socket
import time
from collections.abc import Callable
from typing import Any, TypeVar

# Time limit for a request to arrive. A caller with a good key has more for a long body, at the rate below.
READ_S = 20.0
# A caller is disconnected if it reads nothing for 30 s, or is slower than 20 kB/s (two minutes for the 2.5 MB of
# 10,000 transactions).
_STALLED_S = 30.0
_SLOWEST_BYTES_PER_S = 20_000

_Result = TypeVar("_Result")


class CallerSocket(socket.socket):
    """A socket that receives until `read_until` (`time.monotonic`), and sends within the limits above.

    For a caller that is too slow, it raises the error of a reset connection, which gunicorn and the application handle.
    """

    read_until = 0.0
    # Whether the caller of the current request was too slow.
    is_too_slow = False
    # The received bytes of the current request, up to its first line: they say how to answer a malformed request.
    beginning = b""
    # gunicorn's request that is being answered, if any; whether its caller waits for permission to send the body; and
    # whether each byte of the body gives it more time.
    _request: Any = None
    _awaits_continue = False
    _is_trusted = False

    def begin_request(self) -> None:
        """Expect a request, from its first byte."""
        self.read_until = time.monotonic() + READ_S
        self.beginning = b""
        self._is_trusted = self.is_too_slow = False

    def begin_answer(self, request: Any) -> None:
        """Take a request that is now answered. A caller that expects 100 is told so when its body is first read.

        gunicorn would tell it before the key, the rate and the size were looked at. It has no setting for that, hence
        its private `_expected_100_continue`.
        """
        self._request = request
        self._awaits_continue = request._expected_100_continue  # noqa: SLF001
        request._expected_100_continue = False  # noqa: SLF001
        if self._awaits_continue:
            request.must_close = True  # Unless the body is requested: what comes next is unknown.

    def end_answer(self) -> None:
        """Forget the request. A body that nobody has requested is not read."""
        self._request = None
        if self._awaits_continue:
            self._awaits_continue, self.read_until = False, 0.0

    def trust(self, length: int | None) -> None:
        """Give the caller time for a body of this length, or of an unknown length: its key is good."""
        if length is None:
            self._is_trusted = True
        else:
            self.read_until += length / _SLOWEST_BYTES_PER_S

    def recv(self, size: int, flags: int = 0, /) -> bytes:
        if self._awaits_continue:
            self._awaits_continue, self._request.must_close = False, False
            self.sendall(b"HTTP/1.1 100 Continue\r\n\r\n")
        received = self._until(self.read_until, super().recv, size, flags)
        if self._is_trusted:
            self.read_until += len(received) / _SLOWEST_BYTES_PER_S
        if b"\n" not in self.beginning:
            self.beginning += received
        return received

    def sendall(self, data: Any, flags: int = 0, /) -> None:
        # Python's own `sendall` has the same time limit for every size.
        unsent = memoryview(data)
        deadline = time.monotonic() + _STALLED_S + len(unsent) / _SLOWEST_BYTES_PER_S
        while unsent:
            unsent = unsent[self._until(deadline, super().send, unsent, flags) :]

    def _until(self, deadline: float, call: Callable[..., _Result], *arguments: Any) -> _Result:
        remaining = deadline - time.monotonic()
        try:
            if remaining <= 0:
                raise TimeoutError
            self.settimeout(min(remaining, _STALLED_S))
            return call(*arguments)
        except TimeoutError:
            self.is_too_slow = True
            if self._request is not None:
                self._request.must_close = True  # The answer, a 408, says so.
            raise ConnectionResetError(errno.ECONNRESET, "The caller is too slow.") from None
