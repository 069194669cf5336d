"""A PostgreSQL of a run: its data and its log of changes are on a small disk each, where we may mount them."""

import shutil
from pathlib import Path

from app.local.datadir import give_to_owner_of
from app.local.postgresql import PostgreSQL, binary
from tests.crash.clock import Clock
from tests.crash.volume import Volume
from tests.operations.server import Server

# A small log of changes fits a small disk; every error is kept, so that a deadlock is seen there too.
_OPTIONS = ("max_wal_size=64MB", "min_wal_size=32MB", "log_min_messages=error")


class Cluster:
    """The folder of a server, either made anew or as the standby of another, and the command that runs it."""

    def __init__(self, folder: Path) -> None:
        self.data_disk, self.log_disk = Volume(folder / "data", size_mb=640), Volume(folder / "log", size_mb=256)
        self._log = self.log_disk.path / "pg_wal"

    def make(self) -> None:
        """Make an empty one."""
        self._mount()
        self.postgresql.prepare()
        log = self.server.cluster / "pg_wal"
        shutil.move(log, self._log)
        log.symlink_to(self._log)
        for path in (self._log, *self._log.rglob("*")):
            give_to_owner_of(self.server.cluster, path)

    def follow(self, primary: "Cluster") -> None:
        """Make a copy of a server that runs, to be started as its standby."""
        self._mount()
        shutil.copy(primary.server.data.path / "secrets.json", self.server.data.path)
        copy, log = primary.server.folder(self.server.cluster), primary.server.folder(self._log)
        options = ("--checkpoint=fast", "--wal-method=stream", "--write-recovery-conf")
        primary.server.tool("pg_basebackup", f"--pgdata={copy}", f"--waldir={log}", *options)
        self.postgresql.prepare()

    def _mount(self) -> None:
        for disk in self.disks:
            disk.mount()
        self.server = Server(self.data_disk.path)

    @property
    def postgresql(self) -> PostgreSQL:
        return self.server.postgresql

    @property
    def disks(self) -> tuple[Volume, Volume]:
        return self.data_disk, self.log_disk

    def command(self, clock: Clock | None = None) -> list[str]:
        """Return the command that runs the server, with a clock of its own if there is one."""
        words = [*self.postgresql.command(), *(f"--{option}" for option in _OPTIONS)]
        place = words.index(str(binary("postgres")))
        of_clock = [f"{name}={value}" for name, value in clock.environment().items()] if clock else []
        return [*words[:place], "env", *of_clock, *words[place:]]
