"""A person's terminal: tables, lines as they come, interrupts, and calls to this machine."""

import os
import signal
import socket
import threading
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing
from datetime import datetime, timedelta, timezone
from http.server import BaseHTTPRequestHandler, HTTPServer
from typing import IO, NamedTuple, TextIO

import pytest

from app.cli.tables import print_table
from app.local import ports
from app.local import terminal as module
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


def _printed(capsys: pytest.CaptureFixture[str]) -> list[str]:
    print_table(_ROWS, _COLUMNS)
    return [line.rstrip() for line in capsys.readouterr().out.splitlines()]


@pytest.fixture(autouse=True)
def plain_environment(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("FORCE_COLOR", "NO_COLOR", "COLUMNS", "TTY_COMPATIBLE"):
        monkeypatch.delenv(name, raising=False)


def test_a_pipe_gets_a_row_a_line_however_wide_without_colour_or_control(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("COLUMNS", "20")
    assert _printed(capsys) == [
        "   ID  Name                       Balance  On   Created",
        "12345  [bold]Acme[/bold]        1,234,567  yes  –",
        "   20  Globex of the long name          5  no   2026-01-31 09:30Z",
    ]


def test_what_a_terminal_would_obey_is_shown_and_not_sent(capsys: pytest.CaptureFixture[str]) -> None:
    print_table([{"name": "a\nb\x1b[31m\x9b31m\tc"}], {"Name": "name"})
    assert capsys.readouterr().out.splitlines()[1].rstrip() == r"a\x0ab\x1b[31m\x9b31m\x09c"


@pytest.mark.parametrize(("width", "lines"), [("65", 3), ("64", 11), ("30", 12)])
def test_a_terminal_too_narrow_for_the_table_gets_a_block_for_each_row(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch, width: str, lines: int
) -> None:
    monkeypatch.setenv("FORCE_COLOR", "1")
    monkeypatch.setenv("NO_COLOR", "1")
    monkeypatch.setenv("TERM", "xterm")
    monkeypatch.setenv("COLUMNS", width)
    printed = _printed(capsys)
    assert len(printed) == lines
    assert not any("\x1b[3" in line for line in printed), "no colour where NO_COLOR is set"
    assert "…" not in "".join(printed), "nothing is cut off"


class Pipe(NamedTuple):
    reader: IO[str]
    output: TextIO


@pytest.fixture
def pipe() -> Iterator[Pipe]:
    read, write = os.pipe()
    with os.fdopen(read, encoding="utf-8") as reader, os.fdopen(write, "w", encoding="utf-8") as output:
        yield Pipe(reader, output)


def test_lines_of_many_threads_are_all_there_and_not_mixed(pipe: Pipe) -> None:
    with closing(Terminal(pipe.output)) as terminal, ThreadPoolExecutor(8) as pool:
        list(pool.map(terminal.show, ["aaa\nbbb"] * 400))
    pipe.output.close()
    assert pipe.reader.read() == "aaa\nbbb\n" * 400


def test_without_a_reader_nobody_waits(pipe: Pipe, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "_TEXTS_MAX", 1_000)
    monkeypatch.setattr(module, "_FINAL_WRITE_TIMEOUT_S", 0.05)
    with closing(Terminal(pipe.output)) as terminal:
        for _ in range(3_000):  # More than a pipe and the queue take.
            terminal.show("x" * 1_000)
    assert pipe.reader.readline() == f"{'x' * 1_000}\n"


@pytest.mark.parametrize("has_output", [True, False])
def test_an_output_that_is_gone_is_no_trouble(pipe: Pipe, has_output: bool) -> None:
    pipe.reader.close()
    with closing(Terminal(pipe.output if has_output else None)) as terminal:
        terminal.show("is anybody there?")
        terminal.show("no")
    assert terminal._unwritten.empty()


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


class _Ready(BaseHTTPRequestHandler):
    def do_GET(self) -> None:  # The name is the standard library's.
        self.send_response(200 if self.path == "/readyz" else 503)
        self.end_headers()

    def log_message(self, *_: object) -> None:
        pass


@pytest.fixture
def url() -> Iterator[str]:
    """Serve on a port of this machine."""
    with HTTPServer(("127.0.0.1", 0), _Ready) as server:
        thread = threading.Thread(target=server.serve_forever, daemon=True)
        thread.start()
        yield f"http://127.0.0.1:{server.server_port}"
        server.shutdown()
        thread.join()


@pytest.mark.parametrize("name", ["http_proxy", "HTTP_PROXY", "all_proxy"])
def test_a_proxy_of_the_environment_hears_of_no_call(url: str, name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(name, "http://127.0.0.1:1")
    assert ports.answers(f"{url}/readyz")
    assert not ports.answers(f"{url}/elsewhere")


def test_nobody_and_somebody_else_are_no_answer() -> None:
    with socket.create_server(("127.0.0.1", 0)) as listening:
        port = listening.getsockname()[1]

        def be_somebody_else() -> None:
            connection, _ = listening.accept()
            with connection:
                connection.recv(1_000)
                connection.sendall(b"SSH-2.0-OpenSSH_9.2\r\n")

        thread = threading.Thread(target=be_somebody_else)
        thread.start()
        assert not ports.answers(f"http://127.0.0.1:{port}/readyz")
        thread.join()
    assert not ports.answers(f"http://127.0.0.1:{port}/readyz")
