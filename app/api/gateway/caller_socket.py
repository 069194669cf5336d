"""A caller's connection: however slowly the caller sends or reads, no thread waits for it for ever."""

import errno
import socket
import time
from collections.abc import Callable
from typing import Any, TypeVar

# A caller has this long to send a request; 8 MiB in that time is a slow line.
READ_S = 20.0
# A caller that reads nothing of its answer is waited for this long at a time, and one that reads slower than this is
# given up at last: then the 2.5 MB of 10,000 transactions may take two minutes.
_STALLED_S = 30.0
_SLOWEST_BYTES_PER_S = 20_000

_Result = TypeVar("_Result")


class CallerSocket(socket.socket):
    """A connection whose bytes are received until the moment `read_until`, and sent as fast as is asked above.

    The error of a caller that is too slow is that of one that has reset the connection, which gunicorn and the
    application expect.
    """

    read_until = 0.0
    # What was received of the request in hand, as far as its first line: it tells how to answer what cannot be read.
    beginning = b""

    def recv(self, size: int, flags: int = 0, /) -> bytes:
        received = self._until(self.read_until, super().recv, size, flags)
        if b"\n" not in self.beginning:
            self.beginning += received
        return received

    def sendall(self, data: Any, flags: int = 0, /) -> None:
        # Python's own has one limit for however much there is to send.
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
