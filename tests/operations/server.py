"""A PostgreSQL of a test's own, as whoever operates it has it: its folder, its settings, its tools."""

import os
import shutil
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, NamedTuple, Self
from urllib.parse import urlsplit

import psycopg
import pytest

from app.local import ports
from app.local.datadir import DataDir, run_as_owner
from app.local.postgresql import PostgreSQL, binary
from tests.conftest import forget_everything
from tests.deadline import TIMEOUT_S, comes_true
from tests.service.template import copy_to


class Server:
    """A PostgreSQL below a folder, which belongs to whom the server runs as."""

    def __init__(self, folder: Path) -> None:
        folder.mkdir(exist_ok=True)
        self.data = DataDir(folder)
        self.postgresql = PostgreSQL(self.data)
        self.cluster = folder / "postgresql"

    @classmethod
    def migrated(cls, folder: Path) -> Self:
        """Make one that has the service's tables."""
        copy_to(folder)
        return cls(folder)

    def port(self) -> int:
        found = urlsplit(self.postgresql.url()).port
        assert found is not None
        return found

    def folder(self, path: Path) -> Path:
        """Make a folder elsewhere that the server may write to."""
        path.mkdir(mode=0o700)
        owner = self.cluster.stat()
        os.chown(path, owner.st_uid, owner.st_gid)
        return path

    def set(self, **settings: str) -> None:
        """Add settings to the configuration of a server that does not run."""
        with (self.cluster / "postgresql.conf").open("a") as file:
            file.writelines(f"{name} = '{value}'\n" for name, value in settings.items())

    def tool(self, name: str, *arguments: str) -> None:
        """Run one of PostgreSQL's tools as the server's own user, connected as its superuser."""
        connection = {
            "PGHOST": ports.HOST,
            "PGPORT": str(self.port()),
            "PGUSER": "postgres",
            "PGPASSWORD": self.data.password("postgresql_superuser"),
        }
        tool = binary(name)
        command = [*run_as_owner(self.cluster, tool), str(tool), *arguments]
        done = subprocess.run(command, env=os.environ | connection, capture_output=True, text=True, check=False)
        assert done.returncode == 0, done.stderr

    def superuser(self, **named: Any) -> psycopg.Connection[tuple[Any, ...]]:
        """Connect to the service's database as who may see and end every session."""
        named |= {"user": "postgres", "password": self.data.password("postgresql_superuser")}
        return psycopg.connect(self.postgresql.url(), autocommit=True, connect_timeout=3, **named)

    def ask(self, question: str) -> str:
        """Return the one value that answers a question, as the superuser."""
        with self.superuser() as connection:
            row = connection.execute(question.encode()).fetchone()
            assert row is not None
            return str(row[0])

    def set_now(self, **settings: str) -> None:
        """Change settings of a server that runs."""
        with self.superuser() as connection:
            for name, value in settings.items():
                connection.execute(f"ALTER SYSTEM SET {name} = '{value}'".encode())
            connection.execute("SELECT pg_reload_conf()")

    def archive_log(self) -> None:
        """End the log's present segment, and wait until all is archived."""
        last = self.ask("SELECT pg_walfile_name(pg_switch_wal())")
        archived = f"SELECT coalesce(last_archived_wal >= '{last}', false) FROM pg_stat_archiver"
        assert comes_true(lambda: self.ask(archived) == "True", within_s=TIMEOUT_S)

    def restored(self, folder: Path, backup: Path, *, restore_command: str, moment: str) -> "Server":
        """Return a server below another folder: this one as of a moment, from a backup and the log."""
        other = Server(folder)
        shutil.copy(self.data.path / "secrets.json", other.data.path)
        backup.rename(other.cluster)
        other.set(
            archive_mode="off",
            restore_command=restore_command,
            recovery_target_time=moment,
            recovery_target_action="promote",
        )
        (other.cluster / "recovery.signal").touch()
        return other

    def wait_until_restored(self) -> None:
        assert comes_true(lambda: self.ask("SELECT pg_is_in_recovery()") == "False", within_s=TIMEOUT_S)

    @contextmanager
    def running(self, monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
        """Run the server, and let this process be its service."""
        self.postgresql.prepare()
        self.postgresql.start_detached()
        try:
            self.postgresql.wait_until_ready()
            monkeypatch.setenv("DATABASE_URL", self.postgresql.url())
            forget_everything()
            yield
        finally:
            forget_everything()
            self.postgresql.stop()


class Pair(NamedTuple):
    primary: Server
    standby: Server


def standby_of(primary: Server, folder: Path, name: str = "standby") -> Server:
    """Copy a running server below a folder to one that will follow it by streaming replication."""
    standby, copy = Server(folder / name), primary.folder(folder / f"{name}.copy")
    options = ("--checkpoint=fast", "--wal-method=stream", "--write-recovery-conf")
    primary.tool("pg_basebackup", f"--pgdata={copy}", *options)
    shutil.copy(primary.data.path / "secrets.json", standby.data.path)
    copy.rename(standby.cluster)
    return standby
