"""What a person sees of `points up`, written by a thread of its own: nothing waits for whoever reads it."""

import os
import threading
import time
from collections import deque
from contextlib import suppress
from pathlib import Path
from typing import Self, TextIO

import click

# So much is kept for whoever reads later.
_LINES_MAX = 10_000
# How long what is still to be written is waited for at the end.
_LAST_WORDS_WITHIN_S = 2.0


class Terminal:
    """An output of this program, while nobody else writes to it.

    A terminal that is held (Ctrl-S, a pager) or a pipe that nobody reads takes nothing after some kilobytes, and
    a program that goes on writing stands still, with all whose output it shows. Here what does not fit is dropped
    and counted. One that has gone away takes everything, and shows nothing.
    """

    def __init__(self, output: TextIO | None) -> None:
        # There is none where the program was started with its output closed.
        self._output = output or Path(os.devnull).open("w")  # noqa: SIM115  # For as long as we live.
        self._changed = threading.Condition()
        self._unwritten: deque[str] = deque()
        self._lines = 0
        self._dropped = 0
        self._is_writing = False

    def __enter__(self) -> Self:
        self._output.flush()
        # A daemon, and not by way of Python's stream: its lock would be held for ever by a thread that stands still.
        threading.Thread(target=self._write, name="terminal", daemon=True).start()
        return self

    def __exit__(self, *_: object) -> None:
        """Wait a moment for what is still to be written."""
        deadline = time.monotonic() + _LAST_WORDS_WITHIN_S
        with self._changed:
            while (self._unwritten or self._is_writing) and (left := deadline - time.monotonic()) > 0:
                self._changed.wait(left)

    def say(self, text: str) -> None:
        """Show a text that a person waits for, however much is there already."""
        with self._changed:
            self._add(text)

    def log(self, text: str) -> None:
        """Show lines of a log, or count them if they do not fit."""
        lines = 1 + text.count("\n")
        with self._changed:
            if self._lines + lines > _LINES_MAX:
                self._dropped += lines
            else:
                self._add(text)

    def _add(self, text: str) -> None:
        self._unwritten.append(text)
        self._lines += 1 + text.count("\n")
        self._changed.notify_all()

    def _write(self) -> None:
        descriptor, has_colors = self._output.fileno(), self._output.isatty()
        while True:
            text = self._next()
            shown = (text if has_colors else click.unstyle(text)).encode(self._output.encoding, "backslashreplace")
            with suppress(OSError):  # Whoever has read it is gone.
                while shown:
                    shown = shown[os.write(descriptor, shown) :]

    def _next(self) -> str:
        """Wait for something to write, and return all there is."""
        with self._changed:
            self._is_writing = False
            self._changed.notify_all()
            while not self._unwritten:
                self._changed.wait()
            if self._dropped:
                self._unwritten.append(f"… and {self._dropped:,} lines more, which nobody has read in time.")
            texts, self._unwritten = self._unwritten, deque()
            self._lines = self._dropped = 0
            self._is_writing = True
            return "".join(f"{text}\n" for text in texts)
