"""Where the lines of a log go: each at once, or those of a moment together."""

import contextlib
import os
import select
import threading
import time
from collections import deque

# A pipe takes so much from one process as a whole, without a piece of another's in between.
_WHOLE_BYTES = select.PIPE_BUF
# What is told within this time may be written together.
_TOGETHER_WITHIN_S = 0.02
# Whoever logs into a pipe that nobody empties stands still at last, and fills no memory.
_WAITING_MAX = 1_000


class Output:
    """Standard error, for the lines of one process. None is torn, so that those of many processes do not mix."""

    def __init__(self) -> None:
        self._lines: deque[bytes] = deque()
        self._is_writing = threading.Lock()
        self._is_waited_for: threading.Event | None = None

    def write(self, line: bytes) -> None:
        """Write a line at once, after all that were told before it."""
        if self._is_waited_for is None:
            # Without a lock: the process may fork in the middle of this, and a signal's handler may log.
            _write(line)
            return
        self._lines.append(line)
        self.flush()

    def write_soon(self, line: bytes) -> None:
        """Write a line, with others of the same moment once `write_together` was called."""
        if self._is_waited_for is None:
            _write(line)
            return
        self._lines.append(line)
        if len(self._lines) >= _WAITING_MAX:
            self.flush()
        elif not self._is_waited_for.is_set():
            self._is_waited_for.set()

    def write_together(self) -> None:
        """From now on a thread writes what `write_soon` is told, and `flush` at the end what is left.

        For a process of many threads that each tell one line at the same moment: every write gives Python's
        lock away, and whoever reads the log wakes up for it. A fork leaves the thread behind: call it after.
        """
        self._is_waited_for = threading.Event()
        threading.Thread(target=self._write_for_ever, args=(self._is_waited_for,), name="log", daemon=True).start()

    def flush(self) -> None:
        """Write whatever waits."""
        with self._is_writing:
            while self._lines:
                _write(self._next_lines())

    def _next_lines(self) -> bytes:
        """Take as many lines as a pipe takes as a whole, one at least."""
        taken = [self._lines.popleft()]
        size = len(taken[0])
        while self._lines and size + len(self._lines[0]) <= _WHOLE_BYTES:
            taken.append(self._lines.popleft())
            size += len(taken[-1])
        return b"".join(taken)

    def _write_for_ever(self, is_waited_for: threading.Event) -> None:
        while True:
            is_waited_for.wait()
            time.sleep(_TOGETHER_WITHIN_S)
            is_waited_for.clear()  # Before writing: a line that comes meanwhile sets it again.
            self.flush()


def _write(lines: bytes) -> None:
    with contextlib.suppress(OSError):  # Whoever read the log is gone, and the work goes on.
        os.write(2, lines)
