"""The terminal output of `points up`, written by a thread, so that a slow reader delays nothing else."""

import os
import threading
import time
from collections import deque
from contextlib import suppress
from pathlib import Path
from typing import Self, TextIO

import click

from app.values.numbers import points

# Lines kept for a slow reader; further lines are dropped.
_LINES_MAX = 10_000
# How long the end waits for unwritten lines.
_FINAL_WRITE_TIMEOUT_S = 2.0


class Terminal:
    """An output stream that never blocks its writers. Nothing else may write to the stream meanwhile.

    A paused terminal (Ctrl-S, a pager) or an unread pipe takes only some kilobytes; after that a plain write blocks,
    and with it every part whose output is shown. Lines that do not fit are dropped and counted. A closed terminal
    is no error.
    """

    def __init__(self, output: TextIO | None) -> None:
        # None if the program was started with its output closed.
        self._output = output or Path(os.devnull).open("w")  # noqa: SIM115  # Open until the process ends.
        self._changed = threading.Condition()
        self._unwritten: deque[str] = deque()
        self._lines = 0
        self._dropped = 0
        self._is_writing = False

    def __enter__(self) -> Self:
        self._output.flush()
        # A daemon that bypasses Python's stream: if it blocks, it must hold neither the exit nor the stream's lock.
        threading.Thread(target=self._write, name="terminal", daemon=True).start()
        return self

    def __exit__(self, *_: object) -> None:
        """Wait a moment for unwritten lines."""
        deadline = time.monotonic() + _FINAL_WRITE_TIMEOUT_S
        with self._changed:
            while (self._unwritten or self._is_writing) and (left := deadline - time.monotonic()) > 0:
                self._changed.wait(left)

    def say(self, text: str) -> None:
        """Show a text that a person waits for; it is never dropped."""
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
            with suppress(OSError):  # The reader is gone.
                while shown:
                    shown = shown[os.write(descriptor, shown) :]

    def _next(self) -> str:
        """Wait for text to write, and return all of it."""
        with self._changed:
            self._is_writing = False
            self._changed.notify_all()
            while not self._unwritten:
                self._changed.wait()
            if self._dropped:
                self._unwritten.append(f"… and {points(self._dropped)} more lines, not read in time.")
            texts, self._unwritten = self._unwritten, deque()
            self._lines = self._dropped = 0
            self._is_writing = True
            return "".join(f"{text}\n" for text in texts)
