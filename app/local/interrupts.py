"""Interrupts: what must not be cut in two lets them wait."""

import signal
from collections.abc import Callable, Iterator
from contextlib import contextmanager

# How a person, a scheduler and a terminal that goes away ask a command to end.
_INTERRUPTS = frozenset({signal.SIGINT, signal.SIGTERM, signal.SIGHUP})


def end_gently() -> None:
    """Have every interrupt end this process as Ctrl-C does, but those that it was started to ignore (`nohup`)."""
    for interrupt in _heeded():
        signal.signal(interrupt, signal.default_int_handler)


def ask_gently(ask_to_stop: Callable[[], None]) -> None:
    """Have every interrupt call this; but a terminal that goes away only if this process is to end with it (`nohup`).

    A shell has what it starts in the background ignore Ctrl-C, and whoever sends that signal later means it.
    """
    for interrupt in {signal.SIGINT, signal.SIGTERM, *_heeded()}:
        signal.signal(interrupt, lambda *_: ask_to_stop())


@contextmanager
def undisturbed() -> Iterator[None]:
    """Let whoever interrupts wait for the end of the block; for the main thread, as all handlers are.

    To block the signals would not do: the kernel would give them to another thread, of a progress bar say.
    """
    came: list[int] = []
    before = {interrupt: signal.signal(interrupt, lambda number, _: came.append(number)) for interrupt in _heeded()}
    try:
        yield
    finally:
        for interrupt, handler in before.items():
            signal.signal(interrupt, handler)
        if came:
            signal.raise_signal(came[0])


def _heeded() -> list[signal.Signals]:
    """Return the interrupts that this process does not ignore."""
    return [interrupt for interrupt in _INTERRUPTS if signal.getsignal(interrupt) is not signal.SIG_IGN]
