"""The locks of a data directory: who may hold one together, who waits, and that a death frees them."""

import errno
import os
import subprocess
import sys
import threading
from pathlib import Path

import pytest

from app.errors import Refused
from app.local.datadir import DataDir
from tests.deadline import TIMEOUT_S


@pytest.fixture
def datadir(tmp_path: Path) -> DataDir:
    return DataDir(tmp_path)


def test_one_holds_an_exclusive_lock_and_many_a_shared_one(datadir: DataDir) -> None:
    first = datadir.try_lock("up.lock")
    assert first is not None
    assert datadir.try_lock("up.lock") is None
    assert datadir.try_lock("up.lock", shared=True) is None
    first.close()
    with datadir.try_lock("up.lock", shared=True), datadir.try_lock("up.lock", shared=True) as second:  # type: ignore[union-attr]
        assert second is not None
        assert datadir.try_lock("up.lock") is None
    again = datadir.try_lock("up.lock")
    assert again is not None
    again.close()


def test_who_wants_a_held_lock_waits_for_it(datadir: DataDir) -> None:
    order: list[str] = []

    def wait_for_it() -> None:
        with datadir.locked("start.lock"):
            order.append("second")

    other = threading.Thread(target=wait_for_it)
    with datadir.locked("start.lock"):
        other.start()
        assert datadir.try_lock("start.lock") is None
        order.append("first")
    other.join(TIMEOUT_S)
    assert order == ["first", "second"]


def test_a_lock_is_free_again_when_its_holder_is_killed(datadir: DataDir) -> None:
    code = (
        "import sys, time; from app.local.datadir import DataDir; held = DataDir(sys.argv[1]).try_lock('up.lock');"
        "print(held is not None, flush=True); time.sleep(600)"
    )
    with subprocess.Popen([sys.executable, "-c", code, str(datadir.path)], stdout=subprocess.PIPE, text=True) as holder:
        assert holder.stdout is not None
        assert holder.stdout.readline() == "True\n"
        assert datadir.try_lock("up.lock") is None
        holder.kill()
    free = datadir.try_lock("up.lock")
    assert free is not None
    free.close()


def test_a_folder_without_locks_is_refused_in_a_sentence(datadir: DataDir, monkeypatch: pytest.MonkeyPatch) -> None:
    def without_locks(*_: object) -> None:
        raise OSError(errno.ENOLCK, os.strerror(errno.ENOLCK))

    monkeypatch.setattr("fcntl.flock", without_locks)
    with pytest.raises(Refused, match=r"cannot be locked.*\(No locks available\)\. Name a local one with --data-dir"):
        datadir.try_lock("up.lock")
    with pytest.raises(Refused, match="No locks available"), datadir.locked("start.lock"):
        pass
