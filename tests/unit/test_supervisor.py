"""The supervisor while it works: it starts again what dies, later each time, and shows what the parts say."""

import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator
from itertools import pairwise
from pathlib import Path
from types import FrameType
from typing import Any

import click
import pytest

from app.local import supervisor as module
from app.local.datadir import DataDir
from app.local.supervisor import Part, Supervisor
from tests.deadline import TIMEOUT_S, until
from tests.unit import parts
from tests.unit.parts import process_of, start


@pytest.fixture
def supervisor(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Supervisor]:
    """Return a supervisor in a hurry; whatever a test has started with it is gone after the test."""
    monkeypatch.setattr(module, "_CHECK_EVERY_S", 0.002)
    monkeypatch.setattr(module, "_RESTART_DELAY_S", 0.02)
    monkeypatch.setattr(module, "_RESTART_DELAY_MAX_S", 0.08)
    one = Supervisor(DataDir(tmp_path), click.echo)
    yield one
    one.stop()


def until_true(condition: Callable[[], bool]) -> Callable[[], bool]:
    """Return what ends a watch as soon as the condition holds, and fails when it does not in time."""
    deadline = time.monotonic() + TIMEOUT_S

    def is_time() -> bool:
        assert time.monotonic() < deadline, "what was watched for did not happen"
        return condition()

    return is_time


def deaths(supervisor: Supervisor, part: Part, count: int) -> None:
    """Watch until a part has died so many times."""
    supervisor.watch(until=until_true(lambda: part.deaths == count))


def test_a_part_that_keeps_dying_is_started_again_later_each_time_up_to_a_limit(
    supervisor: Supervisor, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    part = parts.part(tmp_path, parts.DIES)
    supervisor.start(part)
    deaths(supervisor, part, 5)
    said = [line.partition("│ ")[2] for line in capsys.readouterr().out.splitlines()]
    delays = [0.02, 0.04, 0.08, 0.08, 0.08]
    assert said == [f"died (exit status 3); starting it again in {delay:g} s" for delay in delays]
    starts = [float(moment) for moment in parts.notes(tmp_path, "start")]
    gaps = [after - before for before, after in pairwise(starts)]
    assert len(gaps) == 4
    assert all(gap >= delay for gap, delay in zip(gaps, delays, strict=False))


def test_a_death_after_a_long_life_counts_as_the_first(
    supervisor: Supervisor, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    part = parts.part(tmp_path, parts.DIES)
    supervisor.start(part)
    deaths(supervisor, part, 2)
    monkeypatch.setattr(module, "_STABLE_AFTER_S", 0.0)
    supervisor.watch(until=until_true(lambda: part.deaths == 1))
    assert capsys.readouterr().out.splitlines()[-1].endswith("in 0.02 s")


def test_children_of_a_dead_part_end_before_its_restart(supervisor: Supervisor, tmp_path: Path) -> None:
    part = parts.part(tmp_path, parts.DIES_AND_LEAVES_A_CHILD)
    supervisor.start(part)
    deaths(supervisor, part, 2)
    for child in parts.notes(tmp_path, "child"):
        until(lambda pid=int(child): parts.is_gone(pid), "the child of a dead part ends")


def test_the_output_of_a_part_is_shown_at_once_under_its_name_and_hidden_lines_are_not(
    supervisor: Supervisor, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.delenv("PYTHONUNBUFFERED", raising=False)
    code = (
        "import sys, time; print('hello  '); print(); print('a warning to hide'); print('no', file=sys.stderr);"
        "sys.stdout.buffer.write(b'not utf-8: \\xff\\n'); time.sleep(600)"
    )
    supervisor.start(parts.part(tmp_path, code, name="web", hide="warning"))
    shown = ""

    def read() -> bool:
        nonlocal shown
        shown += capsys.readouterr().out
        return "not utf-8" in shown

    until(read, "a part that still runs is heard")
    assert shown.splitlines() == ["       web │ hello", "       web │ no", "       web │ not utf-8: �"]


def test_an_interrupt_ends_the_watch_at_whatever_line_it_comes(supervisor: Supervisor) -> None:
    """A handler runs between any two lines of the main thread, also of those that hold a lock."""
    looks: list[None] = []

    def interrupt(_frame: FrameType, _event: str, _argument: object) -> Any:
        if looks:
            supervisor.ask_to_stop()
        return interrupt

    def look() -> bool:
        looks.append(None)
        return False

    def watch() -> None:
        sys.settrace(interrupt)
        supervisor.watch(until=look)

    watching = threading.Thread(target=watch, daemon=True)
    watching.start()
    watching.join(TIMEOUT_S)
    assert not watching.is_alive()
    assert len(looks) == 1


def test_a_part_that_cannot_be_started_again_at_the_moment_is_tried_again(
    supervisor: Supervisor, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    part = parts.part(tmp_path, parts.STAYS)
    start(supervisor, tmp_path, part)
    refused = iter([BlockingIOError(11, "Resource temporarily unavailable")])

    def popen(*arguments: Any, **more: Any) -> subprocess.Popen[bytes]:
        for error in refused:
            raise error
        return started(*arguments, **more)

    started = subprocess.Popen
    monkeypatch.setattr(subprocess, "Popen", popen)
    before = process_of(part)
    before.kill()
    supervisor.watch(until=until_true(lambda: part.process not in (before, None)))
    assert "cannot be started (Resource temporarily unavailable)" in capsys.readouterr().out
