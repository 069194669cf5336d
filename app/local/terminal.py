"""The terminal output of `points up`, written by a thread, so that a reader who is slow or gone delays nothing else."""

import os
import queue
import threading
from contextlib import suppress
from typing import TextIO

# Texts kept for a slow reader; what comes beyond is dropped.
_TEXTS_MAX = 10_000
# How long the end waits for unwritten texts.
_FINAL_WRITE_TIMEOUT_S = 2.0


class Terminal:
    """An output that never blocks its writers. Nothing else may write to it meanwhile.

    A paused terminal (Ctrl-S, a pager) or an unread pipe takes only some kilobytes; after that a plain write blocks,
    and with it every part whose output is shown, and the stop.
    """

    def __init__(self, output: TextIO | None) -> None:
        self._unwritten: queue.Queue[bytes | None] = queue.Queue(_TEXTS_MAX)
        self._encoding = "utf-8" if output is None else output.encoding
        # A daemon that bypasses Python's stream: if it blocks, it must hold neither the exit nor the stream's lock.
        self._writer = threading.Thread(target=self._write, args=(output,), daemon=True)
        self._writer.start()

    def show(self, text: str) -> None:
        """Show one or more lines; drop them if a reader has left too many before."""
        with suppress(queue.Full):
            self._unwritten.put_nowait(f"{text}\n".encode(self._encoding, "backslashreplace"))

    def close(self) -> None:
        """Wait a moment until all is written."""
        with suppress(queue.Full):
            self._unwritten.put_nowait(None)
            self._writer.join(_FINAL_WRITE_TIMEOUT_S)

    def _write(self, output: TextIO | None) -> None:
        while (text := self._unwritten.get()) is not None:
            with suppress(OSError, ValueError):  # The reader is gone, or the output is closed.
                while output is not None and text:
                    text = text[os.write(output.fileno(), text) :]
