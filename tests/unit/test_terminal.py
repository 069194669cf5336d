"""What `points up` shows: all of it to whoever reads, and nothing stands still for who does not."""

import os
import re
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from typing import IO, NamedTuple, TextIO

import click
import pytest

from app.local import terminal as module
from app.local.terminal import Terminal

# More than a pipe takes.
LINE = "x" * 1_000


class Pipe(NamedTuple):
    reader: IO[str]
    output: TextIO


@pytest.fixture
def pipe() -> Iterator[Pipe]:
    read, write = os.pipe()
    with os.fdopen(read, encoding="utf-8") as reader, os.fdopen(write, "w", encoding="utf-8") as output:
        yield Pipe(reader, output)


def test_what_was_shown_is_there_at_the_end_in_order_and_without_colors_in_a_pipe(pipe: Pipe) -> None:
    with Terminal(pipe.output) as terminal:
        for number in range(20):
            terminal.log(click.style(f"line {number}", fg="red"))
        terminal.say("the end")
    pipe.output.close()
    assert pipe.reader.read().splitlines() == [*(f"line {number}" for number in range(20)), "the end"]


def test_where_nobody_reads_nobody_waits_and_what_was_dropped_is_counted(
    pipe: Pipe, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(module, "_LINES_MAX", 1_000)
    monkeypatch.setattr(module, "_FINAL_WRITE_TIMEOUT_S", 0.05)
    with Terminal(pipe.output) as terminal:
        for _ in range(3_000):
            terminal.log(LINE)
        terminal.say("the introduction")
    shown: list[str] = []
    dropped = 0
    while "the introduction" not in shown or shown.count(LINE) + dropped < 3_000:
        shown.append(pipe.reader.readline().rstrip())
        if told := re.fullmatch(r"… and ([0-9 ]+) more lines, not read in time\.", shown[-1]):
            dropped += int(told[1].replace(" ", ""))
    assert shown.count(LINE) + dropped == 3_000
    assert dropped > 900  # A pipe takes 65 of them, the writer and the queue 1,000 each.


def test_a_terminal_that_is_gone_is_no_trouble(pipe: Pipe) -> None:
    pipe.reader.close()
    with Terminal(pipe.output) as terminal:
        terminal.say("is anybody there?")
        terminal.say("no")
    assert not terminal._unwritten


def test_a_program_without_standard_output_shows_nothing() -> None:
    with Terminal(None) as terminal:
        terminal.say("is anybody there?")
    assert not terminal._unwritten


def test_lines_of_many_threads_are_not_mixed(pipe: Pipe) -> None:
    with Terminal(pipe.output) as terminal, ThreadPoolExecutor(8) as pool:
        list(pool.map(terminal.log, ["aaa\nbbb"] * 400))
    pipe.output.close()
    assert pipe.reader.read() == "aaa\nbbb\n" * 400
