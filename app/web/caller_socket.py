"""A caller's connection with time limits: a caller that sends or reads too slowly is disconnected.

What a caller has sent is received ahead, until the request is whole: only then is a thread taken by it.
"""

import errno
import math
import re
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

# So much of any request is received ahead, and its body if there is room for it.
AHEAD_BYTES = 65_536
# What tells in a head how long the body is; a length that is not written like this is refused by gunicorn.
_LENGTHS = re.compile(rb"\r\n(?:content-length:[ \t]*([0-9]{1,18})[ \t]*(?=\r\n)|(?:transfer-encoding|expect):)", re.I)

_Result = TypeVar("_Result")


class CallerSocket(socket.socket):
    """A socket that receives until `read_until` (`time.monotonic`), and sends within the limits above.

    For a caller that is too slow, it raises the error of a reset connection, which gunicorn and the application handle.
    """

    read_until = 0.0
    # What was received ahead of the current request and is not read yet, and how much of it was received in all.
    arrived = bytearray()
    bytes_ahead = 0
    # When the current request began.
    began_at = 0.0
    # The thread's place among those that wait for their callers, if it has one; called to give it back.
    place: Callable[[], None] | None = None
    # Of the current request: its bytes if its head tells that, infinite if only its end does, and None before.
    _bytes: float | None = None
    # Whether the caller of the current request was too slow.
    is_too_slow = False
    # The received bytes of the current request, up to its first line: they say how to answer a malformed request.
    beginning = b""
    # gunicorn's request that is being answered, if any; whether its caller waits for permission to send the body; and
    # whether each byte of the body gives it more time.
    _request: Any = None
    _awaits_continue = False
    _is_trusted = False

    def begin_request(self, received: bytes = b"") -> None:
        """Expect a request, of which this was received with the one before it."""
        self.began_at = time.monotonic()
        self.read_until = self.began_at + READ_S
        self.beginning, self.arrived, self.bytes_ahead, self._bytes = b"", bytearray(), 0, None
        self._take_ahead(received)
        self._is_trusted = self.is_too_slow = False

    def receive_ahead(self) -> int:
        """Receive what has come of the request, without waiting; return how much, 0 at the end.

        Raises:
            BlockingIOError: nothing has come.
            OSError: the caller is gone.
        """
        return self._take_ahead(super().recv(AHEAD_BYTES, socket.MSG_DONTWAIT))

    def _take_ahead(self, received: bytes) -> int:
        searched = max(0, len(self.arrived) - 3)
        self.arrived += received
        self.bytes_ahead += len(received)
        if self._bytes is None and (end := self.arrived.find(b"\r\n\r\n", searched)) >= 0:
            lengths = [int(number) if number else math.inf for number in _LENGTHS.findall(self.arrived, 0, end + 2)]
            self._bytes = end + 4 + max(lengths, default=0)
        return len(received)

    @property
    def has_head(self) -> bool:
        """Tell whether the head of the request has arrived, as far as it is looked for."""
        return self._bytes is not None or len(self.arrived) >= AHEAD_BYTES

    @property
    def is_whole(self) -> bool:
        """Tell whether all of the request has arrived."""
        return self._bytes is not None and len(self.arrived) >= self._bytes

    def is_read_ahead(self, longest: int, room: int) -> bool:
        """Tell whether the rest of the request is to be received ahead, too.

        Args:
            longest: the bytes of the longest body.
            room: for how many more bytes there is room.
        """
        if self._bytes is None:
            return len(self.arrived) < AHEAD_BYTES
        return self._bytes <= AHEAD_BYTES + longest and (len(self.arrived) < AHEAD_BYTES or room > 0)

    def expect_no_more(self) -> None:
        """Wait for the caller no longer, unless it is trusted."""
        self.read_until = min(self.read_until, time.monotonic())

    def give_place_back(self) -> None:
        """Wait for no more of the request."""
        place, self.place = self.place, None
        if place is not None:
            place()

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
        if self.arrived:
            received = bytes(self.arrived[:size])
            del self.arrived[:size]
        else:
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
