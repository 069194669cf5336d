"""The terminal of a command: its interrupts, turned into a single request to stop, and the output of `points up`."""

import os
import queue
import signal
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from typing import TextIO

# Sent by Ctrl-C, by a scheduler, and when the terminal closes.
_INTERRUPTS = frozenset({signal.SIGINT, signal.SIGTERM, signal.SIGHUP})


def end_gently() -> None:
    """Make every interrupt end this process as Ctrl-C does. Ignored signals (`nohup`) stay ignored."""
    for interrupt in _not_ignored():
        signal.signal(interrupt, signal.default_int_handler)


def ask_gently(ask_to_stop: Callable[[], None]) -> None:
    """Call `ask_to_stop` on every interrupt. SIGHUP stays ignored if the process was started with `nohup`.

    A shell starts background processes with SIGINT ignored. A SIGINT sent to this process later is intended, so it
    counts.
    """
    for interrupt in {signal.SIGINT, signal.SIGTERM, *_not_ignored()}:
        signal.signal(interrupt, lambda *_: ask_to_stop())


@contextmanager
def interrupts_delayed() -> Iterator[None]:
    """Delay interrupts until the end of the block. Main thread only, as for all signal handlers.

    Blocking the signals would not help: the kernel would deliver them to another thread, such as a progress bar's.
    """
    came: list[int] = []
    before = {number: signal.signal(number, lambda number, _: came.append(number)) for number in _not_ignored()}
    try:
        yield
    finally:
        for interrupt, handler in before.items():
            signal.signal(interrupt, handler)
        if came:
            signal.raise_signal(came[0])


def _not_ignored() -> list[signal.Signals]:
    """Return the interrupts that this process does not ignore."""
    return [interrupt for interrupt in _INTERRUPTS if signal.getsignal(interrupt) is not signal.SIG_IGN]


# Texts kept for a slow reader; what comes beyond is dropped.
_TEXTS_MAX = 10_000
# How long the end waits for unwritten texts.
_FINAL_WRITE_TIMEOUT_S = 2.0


class Terminal:
    """An output that never blocks its writers. Nothing else may write to it meanwhile.

    A paused terminal (Ctrl-S, a pager) or an unread pipe takes only some kilobytes; after that a plain write blocks,
    and with it every part whose output it prints, and the stop.
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
