"""What a supervisor stops, and what one that was killed has left behind."""

import json
import signal
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import click
import psutil
import pytest

from app.errors import Refused
from app.local import part as module
from app.local.datadir import RUNNING_FILE, DataDir
from app.local.part import kill_group, process_identity
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


@pytest.fixture
def next_one(tmp_path: Path) -> Supervisor:
    """Return the supervisor that finds what the first one has left behind."""
    return Supervisor(DataDir(tmp_path), click.echo)


def test_leftovers_of_a_killed_supervisor_end(supervisor: Supervisor, next_one: Supervisor, tmp_path: Path) -> None:
    left = [parts.part(tmp_path, parts.SAYS_GOODBYE, name=name) for name in ("first", "second")]
    start(supervisor, tmp_path, *left)
    next_one.end_leftovers()
    assert all(parts.is_gone(process_of(part).pid) for part in left)
    assert parts.notes(tmp_path, "end") == ["second", "first"]  # They were asked, in order, and not killed.
    assert not (tmp_path / RUNNING_FILE).exists()


def test_a_leftover_gets_its_own_signal(supervisor: Supervisor, next_one: Supervisor, tmp_path: Path) -> None:
    start(supervisor, tmp_path, parts.part(tmp_path, parts.SAYS_GOODBYE, stop_signal=signal.SIGINT))
    next_one.end_leftovers()
    assert parts.notes(tmp_path, "by") == ["SIGINT"]


def test_leftovers_that_do_not_end_when_asked_are_killed(
    supervisor: Supervisor, next_one: Supervisor, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def out_of_patience(process: psutil.Process, timeout: float) -> None:
        raise psutil.TimeoutExpired(timeout, process.pid)

    part = parts.part(tmp_path, parts.IGNORES_THE_SIGNAL)
    start(supervisor, tmp_path, part)
    monkeypatch.setattr(psutil.Process, "wait", out_of_patience)
    next_one.end_leftovers()
    assert process_of(part).wait(TIMEOUT_S) == -signal.SIGKILL


def test_children_of_leftovers_end_with_them(supervisor: Supervisor, next_one: Supervisor, tmp_path: Path) -> None:
    start(supervisor, tmp_path, parts.part(tmp_path, parts.HAS_A_CHILD))
    [child] = map(int, parts.notes(tmp_path, "child"))
    next_one.end_leftovers()
    until(lambda: parts.is_gone(child), "the grandchild ends")


def test_leftovers_are_known_again_after_the_clock_was_set(
    supervisor: Supervisor, next_one: Supervisor, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    leftover = parts.part(tmp_path, parts.STAYS)
    start(supervisor, tmp_path, leftover)
    boot_s = psutil.boot_time()
    monkeypatch.setattr("psutil._psplatform.boot_time", lambda: boot_s + 7_200)
    next_one.end_leftovers()
    assert parts.is_gone(process_of(leftover).pid)


@pytest.mark.skipif(not module._BOOT_ID.exists(), reason="only Linux names each start of the machine")
def test_a_process_of_another_start_of_the_machine_is_another(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    before = process_identity(psutil.Process())
    assert process_identity(psutil.Process()) == before
    another = tmp_path / "boot_id"
    another.write_text("another\n")
    monkeypatch.setattr(module, "_BOOT_ID", another)
    assert process_identity(psutil.Process()) != before


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


def test_leftovers_that_have_ended_by_themselves_are_no_error(next_one: Supervisor, tmp_path: Path) -> None:
    next_one.end_leftovers()  # Nothing was ever noted.
    with subprocess.Popen([sys.executable, "-Sc", ""]) as ended:
        created = process_identity(psutil.Process(ended.pid))
    known = {"gone": {"pid": ended.pid, "created": created, "stop_signal": signal.SIGTERM}}
    DataDir(tmp_path).write(RUNNING_FILE, {"pid": 1, "parts": known})
    next_one.end_leftovers()
    assert not (tmp_path / RUNNING_FILE).exists()


def test_what_another_user_has_left_behind_is_named(
    supervisor: Supervisor, next_one: Supervisor, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    start(supervisor, tmp_path, parts.part(tmp_path, parts.STAYS, name="web"))

    def refuse(process: psutil.Process, _: int) -> None:
        raise psutil.AccessDenied(process.pid)

    monkeypatch.setattr(psutil.Process, "send_signal", refuse)
    with pytest.raises(Refused, match="The web that another `points up` has left behind still runs"):
        next_one.end_leftovers()
