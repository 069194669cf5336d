"""The supervisor at its end: the parts stop in good order, and nothing they have started stays."""

import signal
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import click
import pytest

from app.local.datadir import RUNNING_FILE, DataDir
from app.local.part import kill_group
from app.local.supervisor import Supervisor
from tests.deadline import TIMEOUT_S, until
from tests.unit import parts
from tests.unit.parts import process_of, start


@pytest.fixture
def supervisor(tmp_path: Path) -> Iterator[Supervisor]:
    """Return a supervisor; whatever a test has started with it is gone after the test."""
    one = Supervisor(DataDir(tmp_path), click.echo)
    yield one
    one.stop()


def test_parts_are_stopped_one_after_another_the_last_one_first(supervisor: Supervisor, tmp_path: Path) -> None:
    started = [parts.part(tmp_path, parts.SAYS_GOODBYE, name=name) for name in ("first", "second", "third")]
    start(supervisor, tmp_path, *started)
    supervisor.stop()
    assert parts.notes(tmp_path, "end") == ["third", "second", "first"]
    assert [process_of(part).returncode for part in started] == [0, 0, 0]
    assert not (tmp_path / RUNNING_FILE).exists()
    assert supervisor.is_stopping


def test_a_part_is_asked_to_stop_by_the_signal_it_knows(supervisor: Supervisor, tmp_path: Path) -> None:
    start(supervisor, tmp_path, parts.part(tmp_path, parts.SAYS_GOODBYE, stop_signal=signal.SIGINT))
    supervisor.stop()
    assert parts.notes(tmp_path, "by") == ["SIGINT"]


def test_a_part_that_ignores_the_signal_is_killed_after_its_time(
    supervisor: Supervisor, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    part = parts.part(tmp_path, parts.IGNORES_THE_SIGNAL, stop_timeout_s=0.05)
    start(supervisor, tmp_path, part)
    supervisor.stop()
    assert process_of(part).returncode == -signal.SIGKILL
    assert "did not stop in 0.05 s and is killed" in capsys.readouterr().out


def test_a_stop_leaves_no_grandchildren(supervisor: Supervisor, tmp_path: Path) -> None:
    start(supervisor, tmp_path, parts.part(tmp_path, parts.HAS_A_CHILD))
    [child] = map(int, parts.notes(tmp_path, "child"))
    assert not parts.is_gone(child)
    supervisor.stop()
    until(lambda: parts.is_gone(child), "the grandchild ends")


def test_a_stop_of_what_has_died_already_and_of_nothing_at_all_is_fine(supervisor: Supervisor, tmp_path: Path) -> None:
    part = parts.part(tmp_path, parts.DIES)
    supervisor.start(part)
    process_of(part).wait(TIMEOUT_S)
    supervisor.stop()
    supervisor.stop()
    assert process_of(part).returncode == 3


def test_a_group_is_ended_by_the_number_of_its_first_process_and_may_be_gone() -> None:
    with subprocess.Popen([sys.executable, "-Sc", ""], start_new_session=True) as ended:
        pass
    kill_group(ended.pid)
