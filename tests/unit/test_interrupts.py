"""Interrupts: each ends a command as Ctrl-C does, but one that it was started to ignore; and they can wait."""

import os
import signal
import threading
import time
from collections.abc import Iterator

import pytest

from app.local.interrupts import ask_gently, end_gently, interrupts_delayed

_INTERRUPTS = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)


@pytest.fixture(autouse=True)
def without_effect() -> Iterator[None]:
    """Keep interrupts that nothing is done about from ending the tests, and leave the others the handlers they had."""
    before = {interrupt: signal.signal(interrupt, lambda *_: None) for interrupt in _INTERRUPTS}
    yield
    for interrupt, handler in before.items():
        signal.signal(interrupt, handler)


@pytest.mark.parametrize("interrupt", _INTERRUPTS)
def test_whatever_ends_a_command_ends_it_as_ctrl_c_does(interrupt: signal.Signals) -> None:
    end_gently()
    with pytest.raises(KeyboardInterrupt):
        os.kill(os.getpid(), interrupt)


def test_what_a_command_was_started_to_ignore_is_ignored() -> None:
    signal.signal(signal.SIGHUP, signal.SIG_IGN)
    end_gently()
    os.kill(os.getpid(), signal.SIGHUP)


@pytest.mark.parametrize("interrupt", _INTERRUPTS)
def test_an_interrupt_waits_for_the_end_of_what_must_not_be_cut_in_two(interrupt: signal.Signals) -> None:
    end_gently()
    written, is_over = [], threading.Event()
    bar = threading.Thread(target=is_over.wait)  # The kernel may give a signal to any thread.
    bar.start()
    try:
        with pytest.raises(KeyboardInterrupt), interrupts_delayed():  # noqa: PT012
            for _ in range(3):
                os.kill(os.getpid(), interrupt)
                time.sleep(0.05)  # So long that the thread has it.
                written.append("a piece")
    finally:
        is_over.set()
        bar.join()
    assert written == ["a piece"] * 3


def test_what_is_ignored_stays_ignored_while_nothing_may_be_cut_in_two() -> None:
    signal.signal(signal.SIGHUP, signal.SIG_IGN)
    end_gently()
    with interrupts_delayed():
        os.kill(os.getpid(), signal.SIGHUP)
    os.kill(os.getpid(), signal.SIGHUP)


def test_what_is_asked_to_stop_goes_on_until_it_does_also_in_the_background_and_outlives_a_terminal_with_nohup() -> (
    None
):
    for ignored in (signal.SIGINT, signal.SIGHUP):
        signal.signal(ignored, signal.SIG_IGN)
    asked: list[str] = []
    ask_gently(lambda: asked.append("to stop"))
    for interrupt in _INTERRUPTS:
        os.kill(os.getpid(), interrupt)
    assert asked == ["to stop", "to stop"]
