"""A caller's connection with time limits: a caller that sends or reads too slowly is disconnected."""

import errno
import socket
import time
from collections.abc import Callable
from typing import Any, TypeVar

# Time limit for a request to arrive; enough for 8 MiB on a slow line.
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
    # The received bytes of the current request, up to its first line: they say how to answer a malformed request.
    beginning = b""

    def recv(self, size: int, flags: int = 0, /) -> bytes:
        received = self._until(self.read_until, super().recv, size, flags)
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
            raise ConnectionResetError(errno.ECONNRESET, "The caller is too slow.") from None
