"""The data directory: its ports, its files, its owner and its locks."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

from app.local.datadir import DataDir


@pytest.fixture
def datadir(tmp_path: Path) -> DataDir:
    return DataDir(tmp_path)


def test_a_write_that_fails_leaves_the_old_file_whole(datadir: DataDir, monkeypatch: pytest.MonkeyPatch) -> None:
    datadir.write("servers.json", {"a": 1})

    def full(_descriptor: int) -> None:
        raise OSError("No space left on device")

    monkeypatch.setattr(os, "fsync", full)
    with pytest.raises(OSError, match="No space"):
        datadir.write("servers.json", {"a": 2})
    assert datadir.read("servers.json") == {"a": 1}


def test_files_are_for_their_owner_alone_and_drafts_do_not_stay(datadir: DataDir) -> None:
    before = os.umask(0)
    try:
        datadir.write("servers.json", {"a": 1})
        datadir.password("valkey")
    finally:
        os.umask(before)
    files = {path.name: path.stat().st_mode & 0o777 for path in datadir.path.iterdir()}
    assert files == {"servers.json": 0o600, "secrets.json": 0o600}


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
