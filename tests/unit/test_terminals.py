"""A person's terminal: tables, lines as they come, and interrupts."""

import os
import signal
import threading
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing
from datetime import datetime, timedelta, timezone

import pytest

from app.cli.tables import print_table
from app.local.interrupts import ask_gently, end_gently, interrupts_delayed
from app.local.terminal import Terminal

_COLUMNS = {"ID": "id", "Name": "name", "Balance": "balance", "On": "on", "Created": "created_at"}
_ROWS = [
    {"id": 12_345, "name": "[bold]Acme[/bold]", "balance": 1_234_567, "on": True, "created_at": None},
    {
        "id": 20,
        "name": "Globex of the long name",
        "balance": 5,
        "on": False,
        # As a connection of another time zone answers it.
        "created_at": datetime(2026, 1, 31, 18, 30, tzinfo=timezone(timedelta(hours=9))),
    },
]


def test_a_pipe_gets_a_row_a_line_however_wide_without_colour_or_control(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    for name in ("FORCE_COLOR", "NO_COLOR", "TTY_COMPATIBLE"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("COLUMNS", "20")
    print_table(_ROWS, _COLUMNS)
    assert [line.rstrip() for line in capsys.readouterr().out.splitlines()] == [
        "   ID  Name                       Balance  On   Created",
        "12345  [bold]Acme[/bold]        1,234,567  yes  –",
        "   20  Globex of the long name          5  no   2026-01-31 09:30Z",
    ]


def test_what_a_terminal_would_obey_is_shown_and_not_sent(capsys: pytest.CaptureFixture[str]) -> None:
    print_table([{"name": "a\nb\x1b[31m\x9b31m\tc"}], {"Name": "name"})
    assert capsys.readouterr().out.splitlines()[1].rstrip() == r"a\x0ab\x1b[31m\x9b31m\x09c"


def test_lines_of_many_threads_are_all_there_and_not_mixed() -> None:
    read, write = os.pipe()
    with os.fdopen(read, encoding="utf-8") as reader:
        with (
            os.fdopen(write, "w", encoding="utf-8") as output,
            closing(Terminal(output)) as terminal,
            ThreadPoolExecutor(8) as pool,
        ):
            list(pool.map(terminal.show, ["aaa\nbbb"] * 400))
        assert reader.read() == "aaa\nbbb\n" * 400


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
