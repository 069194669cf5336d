"""What `points up` shows: all of it to whoever reads, and nothing stands still for who does not."""

import os
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing
from typing import IO, NamedTuple, TextIO

import pytest

from app.local import terminal as module
from app.local.terminal import Terminal


class Pipe(NamedTuple):
    reader: IO[str]
    output: TextIO


@pytest.fixture
def pipe() -> Iterator[Pipe]:
    read, write = os.pipe()
    with os.fdopen(read, encoding="utf-8") as reader, os.fdopen(write, "w", encoding="utf-8") as output:
        yield Pipe(reader, output)


def test_lines_of_many_threads_are_all_there_at_the_end_and_not_mixed(pipe: Pipe) -> None:
    with closing(Terminal(pipe.output)) as terminal, ThreadPoolExecutor(8) as pool:
        list(pool.map(terminal.show, ["aaa\nbbb"] * 400))
    pipe.output.close()
    assert pipe.reader.read() == "aaa\nbbb\n" * 400


def test_where_nobody_reads_nobody_waits(pipe: Pipe, monkeypatch: pytest.MonkeyPatch) -> None:
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
