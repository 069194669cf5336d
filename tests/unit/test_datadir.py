"""The data directory: its ports, its files, its owner and its locks."""

import errno
import json
import os
import socket
import subprocess
import sys
import threading
from pathlib import Path

import pytest

from app.errors import Refused
from app.local import ports
from app.local.datadir import DataDir
from tests.deadline import TIMEOUT_S


@pytest.fixture
def datadir(tmp_path: Path) -> DataDir:
    return DataDir(tmp_path)


@pytest.mark.parametrize("address", ["127.0.0.1", "0.0.0.0"])  # noqa: S104  # The point is that somebody does.
def test_a_port_is_free_until_somebody_listens_on_it_and_again_after(address: str) -> None:
    port = ports.any_free()
    assert ports.is_free(port)
    with socket.socket() as server:
        server.bind((address, port))
        server.listen()
        assert not ports.is_free(port)
    assert ports.is_free(port)


def test_the_port_of_a_server_that_has_just_ended_is_free_though_the_system_remembers_its_callers() -> None:
    with socket.create_server((ports.HOST, 0)) as server:
        port = server.getsockname()[1]
        with socket.create_connection((ports.HOST, port)) as caller:
            server.accept()[0].close()  # Who closes first is remembered for a minute.
            assert caller.recv(1) == b""
    assert ports.is_free(port)


def test_a_taken_port_is_refused_with_a_way_out() -> None:
    with socket.socket() as server:
        server.bind((ports.HOST, 0))
        server.listen()
        port = server.getsockname()[1]
        with pytest.raises(Refused, match=rf"^Port {port} is taken by another program\. .* make run PORT=N\.$"):
            ports.require_free(port, option="--port")
    ports.require_free(port, option="--port")


def test_a_port_that_the_system_keeps_for_root_is_not_said_to_be_taken(monkeypatch: pytest.MonkeyPatch) -> None:
    def kept(_socket: socket.socket, _address: object) -> None:
        raise PermissionError

    monkeypatch.setattr(socket.socket, "bind", kept)  # Root may have every port.
    with pytest.raises(Refused, match=r"^Port 80 is not open to this user: choose one from 1024 on\.$"):
        ports.require_free(80, option="--port")


def test_the_preferred_port_is_taken_when_it_is_free_and_another_when_not() -> None:
    with socket.socket() as server:
        server.bind((ports.HOST, 0))
        server.listen()
        port = server.getsockname()[1]
        assert ports.any_free(port) not in (0, port)
    assert ports.any_free(port) == port


def test_a_data_directory_is_made_with_its_parents_and_may_be_there_already(tmp_path: Path) -> None:
    datadir = DataDir(tmp_path / "a" / "b")
    assert not datadir.exists()
    datadir.create()
    datadir.create()
    assert datadir.exists()


def test_a_relative_data_directory_stays_where_it_was_named(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    datadir = DataDir(".points")
    monkeypatch.chdir("/")
    assert datadir.path == tmp_path / ".points"


@pytest.mark.parametrize("path", ["file", "file/below"])
def test_a_data_directory_that_cannot_be_made_is_refused_by_name(tmp_path: Path, path: str) -> None:
    (tmp_path / "file").touch()
    with pytest.raises(Refused, match=rf"The data directory {tmp_path / path} cannot be made"):
        DataDir(tmp_path / path).create()


def test_a_data_directory_of_another_user_is_refused(datadir: DataDir, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("os.access", lambda _path, _mode: False)  # Root may write everywhere.
    monkeypatch.setattr("app.local.datadir.user_name", lambda _uid: "ada")
    with pytest.raises(Refused, match=r"cannot be written to: its permissions, or its disk, forbid it\."):
        datadir.create()
    monkeypatch.setattr("os.geteuid", lambda: os.getuid() + 1)
    with pytest.raises(Refused, match=r"belongs to the user ada\. Run as ada, or choose another with --data-dir\."):
        datadir.create()


def test_a_file_is_read_as_it_was_written_and_one_that_is_not_there_is_empty(datadir: DataDir) -> None:
    assert datadir.read("servers.json") == {}
    datadir.write("servers.json", {"port": 1, "name": "ä"})
    assert datadir.read("servers.json") == {"port": 1, "name": "ä"}


def test_an_update_changes_the_keys_it_names_and_takes_away_those_that_are_none(datadir: DataDir) -> None:
    datadir.update("servers.json", a=1, b=2)
    datadir.update("servers.json", b=None, c=3)
    assert datadir.read("servers.json") == {"a": 1, "c": 3}


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


def test_a_password_is_made_once_for_each_name(datadir: DataDir) -> None:
    first = datadir.password("valkey")
    assert len(first) >= 32  # 24 random bytes as text.
    assert datadir.password("postgresql") != first
    assert DataDir(datadir.path).password("valkey") == first
    assert json.loads((datadir.path / "secrets.json").read_text())["valkey"] == first


@pytest.mark.parametrize(
    ("name", "remedy"), [("running.json", "delete it"), ("secrets.json", "restore it from a backup")]
)
def test_a_damaged_file_is_named_with_what_to_do(datadir: DataDir, name: str, remedy: str) -> None:
    (datadir.path / name).write_text("{")
    with pytest.raises(Refused, match=f"{name} is damaged, it is not valid JSON: {remedy}"):
        datadir.read(name)


def test_a_data_directory_that_leads_back_to_itself_or_has_too_long_a_name_is_refused(tmp_path: Path) -> None:
    (tmp_path / "here").symlink_to(tmp_path / "there")
    (tmp_path / "there").symlink_to(tmp_path / "here")
    with pytest.raises(Refused, match=r"leads back to itself|Too many levels"):
        DataDir(tmp_path / "here" / "points").create()
    with pytest.raises(Refused, match="cannot be made: File name too long"):
        DataDir(tmp_path / ("x" * 300)).create()


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
