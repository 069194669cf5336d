"""The data directory: its ports, its files, its owner and its locks."""

import errno
import os
import socket
import subprocess
import sys
from pathlib import Path

import pytest

from app.errors import Refused
from app.local import ports
from app.local.datadir import DataDir


@pytest.fixture
def datadir(tmp_path: Path) -> DataDir:
    return DataDir(tmp_path)


def test_a_taken_port_is_refused_with_a_way_out() -> None:
    with socket.socket() as server:
        server.bind((ports.HOST, 0))
        server.listen()
        port = server.getsockname()[1]
        with pytest.raises(Refused, match=rf"^Port {port} is taken by another program\. .* make run PORT=N\.$"):
            ports.require_free(port, option="--port")
    ports.require_free(port, option="--port")


def test_a_data_directory_of_another_user_is_refused(datadir: DataDir, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("os.access", lambda _path, _mode: False)  # Root may write everywhere.
    monkeypatch.setattr("app.local.datadir.user_name", lambda _uid: "ada")
    with pytest.raises(Refused, match=r"cannot be written to: its permissions, or its disk, forbid it\."):
        datadir.create()
    monkeypatch.setattr("os.geteuid", lambda: os.getuid() + 1)
    with pytest.raises(Refused, match=r"belongs to the user ada\. Run as ada, or choose another with --data-dir\."):
        datadir.create()


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


@pytest.mark.skipif(os.geteuid() != 0, reason="only root works in the folder of somebody else")
def test_what_root_makes_in_the_folder_of_somebody_else_belongs_to_them(datadir: DataDir) -> None:
    os.chown(datadir.path, 65_534, 65_534)
    datadir.write("servers.json", {"a": 1})
    with datadir.locked("start.lock"):
        made = {path.name: (path.stat().st_uid, path.stat().st_gid) for path in datadir.path.iterdir()}
    assert made == dict.fromkeys(("servers.json", "start.lock"), (65_534, 65_534))


@pytest.mark.parametrize(
    ("name", "remedy"), [("running.json", "delete it"), ("secrets.json", "restore it from a backup")]
)
def test_a_damaged_file_is_named_with_what_to_do(datadir: DataDir, name: str, remedy: str) -> None:
    (datadir.path / name).write_text("{")
    with pytest.raises(Refused, match=f"{name} is damaged, it is not valid JSON: {remedy}"):
        datadir.read(name)


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


def test_a_folder_without_locks_is_refused_in_a_sentence(datadir: DataDir, monkeypatch: pytest.MonkeyPatch) -> None:
    def without_locks(*_: object) -> None:
        raise OSError(errno.ENOLCK, os.strerror(errno.ENOLCK))

    monkeypatch.setattr("fcntl.flock", without_locks)
    with pytest.raises(Refused, match=r"cannot be locked.*\(No locks available\)\. Name a local one with --data-dir"):
        datadir.try_lock("up.lock")
    with pytest.raises(Refused, match="No locks available"), datadir.locked("start.lock"):
        pass
