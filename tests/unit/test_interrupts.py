"""Interrupts: each ends a command as Ctrl-C does, but one that it was started to ignore; and they can wait."""

import os
import signal
from collections.abc import Iterator

import pytest

from app.local.interrupts import end_gently, undisturbed

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
    written = []
    with pytest.raises(KeyboardInterrupt), undisturbed():  # noqa: PT012
        os.kill(os.getpid(), interrupt)
        written.append("whole")
    assert written == ["whole"]
