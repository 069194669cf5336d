"""What a supervisor stops, and what one that was killed has left behind."""

import json
import signal
import subprocess
from collections.abc import Iterator
from pathlib import Path

import click
import pytest

from app.local.datadir import RUNNING_FILE, DataDir
from app.local.supervisor import Supervisor, kill_group
from tests.deadline import until
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


@pytest.fixture
def next_one(tmp_path: Path) -> Supervisor:
    """Return the supervisor that finds what the first one has left behind."""
    return Supervisor(DataDir(tmp_path), click.echo)


def test_a_stranger_of_the_same_number_stays(supervisor: Supervisor, next_one: Supervisor, tmp_path: Path) -> None:
    stranger = parts.part(tmp_path, parts.STAYS, name="stranger")
    leftover = parts.part(tmp_path, parts.STAYS, name="leftover")
    start(supervisor, tmp_path, stranger, leftover)
    running = json.loads((tmp_path / RUNNING_FILE).read_text())
    running["parts"]["stranger"]["created"] += "1"
    (tmp_path / RUNNING_FILE).write_text(json.dumps(running))
    next_one.end_leftovers()
    assert parts.is_gone(process_of(leftover).pid)  # The file was read, and the stranger stood in it first.
    assert process_of(stranger).poll() is None


def test_a_group_whose_first_process_is_gone_is_left_alone(next_one: Supervisor, tmp_path: Path) -> None:
    # After a restart of the machine the number may be that of a daemon, which goes on without the
    # process that its group is named after.
    command = parts.part(tmp_path, parts.DIES_AND_LEAVES_A_CHILD).command
    with subprocess.Popen(command, start_new_session=True) as first:
        pass
    [child] = map(int, parts.notes(tmp_path, "child"))
    try:
        known = {"web": {"pid": first.pid, "created": "1.0", "stop_signal": signal.SIGTERM}}
        DataDir(tmp_path).write(RUNNING_FILE, {"pid": 1, "parts": known})
        next_one.end_leftovers()
        assert not parts.is_gone(child)
    finally:
        kill_group(first.pid)
