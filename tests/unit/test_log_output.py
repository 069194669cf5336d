"""Where the lines of a log go: in their order, whole, and those of a moment together where that was asked for."""

import select

import pytest

from app import log_output
from app.log_output import Output
from tests.deadline import until


@pytest.fixture
def written(monkeypatch: pytest.MonkeyPatch) -> list[bytes]:
    """Collect what is written, a piece for each call of the kernel."""
    pieces: list[bytes] = []
    monkeypatch.setattr("os.write", lambda to, piece: pieces.append(piece) if to == 2 else None)
    return pieces


@pytest.fixture
def patient(monkeypatch: pytest.MonkeyPatch) -> Output:
    """Return an output whose thread sleeps as long as any test lasts."""
    monkeypatch.setattr(log_output, "_TOGETHER_WITHIN_S", 3_600)
    output = Output()
    output.write_together()
    return output


def test_a_process_of_one_thread_writes_each_line_at_once(written: list[bytes]) -> None:
    output = Output()
    output.write_soon(b"one\n")
    output.write(b"two\n")
    assert written == [b"one\n", b"two\n"]


def test_lines_of_a_moment_are_written_together_by_the_thread(written: list[bytes]) -> None:
    output = Output()
    output.write_together()
    lines = [b"%d\n" % number for number in range(50)]
    for line in lines:
        output.write_soon(line)
    until(lambda: b"".join(written) == b"".join(lines), "the thread writes them, in their order")
    assert len(written) < len(lines)
    output.write_soon(b"more\n")
    until(lambda: written[-1] == b"more\n", "and those that come later")


def test_a_line_that_must_be_seen_is_written_at_once_after_those_before_it(
    written: list[bytes], patient: Output
) -> None:
    patient.write_soon(b"before\n")
    assert written == []
    patient.write(b"error\n")
    assert written == [b"before\nerror\n"]


def test_no_line_is_torn_by_another_process_that_writes_into_the_same_pipe(
    written: list[bytes], patient: Output
) -> None:
    lines = [b"%d %s\n" % (number, b"x" * 1_500) for number in range(7)] + [b"y" * 9_000 + b"\n", b"last\n"]
    for line in lines:
        patient.write_soon(line)
    patient.flush()
    assert b"".join(written) == b"".join(lines)
    assert all(piece.endswith(b"\n") for piece in written)
    assert [len(piece) > select.PIPE_BUF for piece in written].count(True) == 1  # The one that is longer by itself.
    assert len(written) == 6


def test_a_pipe_that_nobody_empties_fills_no_memory(written: list[bytes], patient: Output) -> None:
    for _ in range(log_output._WAITING_MAX - 1):
        patient.write_soon(b"x\n")
    assert written == []
    patient.write_soon(b"x\n")  # From here on who tells a line writes, and so stands still when the pipe is full.
    assert b"".join(written) == b"x\n" * log_output._WAITING_MAX


def test_a_reader_that_is_gone_stops_nobody_and_the_next_one_hears_on(
    monkeypatch: pytest.MonkeyPatch, patient: Output
) -> None:
    def broken(*_: object) -> None:
        raise BrokenPipeError

    monkeypatch.setattr("os.write", broken)
    patient.write(b"unheard\n")
    heard: list[bytes] = []
    monkeypatch.setattr("os.write", lambda _, piece: heard.append(piece))
    patient.write(b"heard\n")
    assert heard == [b"heard\n"]
