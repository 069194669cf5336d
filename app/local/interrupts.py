"""Interrupts: what must not be cut in two lets them wait."""

import signal
from collections.abc import Iterator
from contextlib import contextmanager

# How a person, a scheduler and a terminal that goes away ask a command to end.
_INTERRUPTS = frozenset({signal.SIGINT, signal.SIGTERM, signal.SIGHUP})


def end_gently() -> None:
    """Have every interrupt end this process as Ctrl-C does, but those that it was started to ignore (`nohup`)."""
    for interrupt in _INTERRUPTS:
        if signal.getsignal(interrupt) is not signal.SIG_IGN:
            signal.signal(interrupt, signal.default_int_handler)


@contextmanager
def undisturbed() -> Iterator[None]:
    """Let whoever interrupts wait for the end of the block."""
    before = signal.pthread_sigmask(signal.SIG_BLOCK, _INTERRUPTS)
    try:
        yield
    finally:
        signal.pthread_sigmask(signal.SIG_SETMASK, before)
