"""Interrupts (SIGINT, SIGTERM, SIGHUP): turned into one request to stop, and delayed where a step must finish."""

import signal
from collections.abc import Callable, Iterator
from contextlib import contextmanager

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
