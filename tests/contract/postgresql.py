"""A PostgreSQL of another version than the embedded one, to hold the same contract on.

`TEST_POSTGRESQL` names the folder of its programs, such as /usr/lib/postgresql/15/bin (Debian's postgresql-15).
"""

import contextlib
import os
import pwd
import secrets
import subprocess
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import psycopg
from psycopg import sql

from tests.deadline import until
from tests.ports import HOST, free_port

PROGRAMS = os.environ.get("TEST_POSTGRESQL")

_OPTIONS = ("-c", f"listen_addresses={HOST}", "-c", "unix_socket_directories=")
_STOPPED_IN_S = 60
_PASSWORD = secrets.token_hex(16)


@contextlib.contextmanager
def older_postgresql() -> Iterator[dict[str, str]]:
    """Give the settings of a service's PostgreSQL: none for the embedded one, which `points up` runs itself."""
    if PROGRAMS is None:
        yield {}
        return
    with running(PROGRAMS) as url:
        yield {"DATABASE_URL": url}


def as_superuser(url: str) -> dict[str, str]:
    """Return what PostgreSQL's own programs need in their environment, to be the superuser of a server's database."""
    server = urlsplit(url)
    return {"PGHOST": HOST, "PGPORT": str(server.port), "PGUSER": "postgres", "PGPASSWORD": str(server.password)}


@contextlib.contextmanager
def running(programs: str) -> Iterator[str]:
    """Run a server on an empty folder, and give the address of a database whose owner is no superuser."""
    # Not below pytest's folder: that is closed to the user whom a server of root's runs as.
    with tempfile.TemporaryDirectory(prefix="points-postgresql-") as folder:
        runs_as: dict[str, Any] = {}
        password = Path(folder) / "password"
        password.write_text(_PASSWORD)
        if os.geteuid() == 0:  # PostgreSQL never runs as root.
            nobody = pwd.getpwnam("nobody")
            for path in (folder, password):
                os.chown(path, nobody.pw_uid, nobody.pw_gid)
            runs_as = {"user": nobody.pw_uid, "group": nobody.pw_gid, "extra_groups": [], "cwd": folder}
        data, port = Path(folder) / "data", free_port()
        options = ("-U", "postgres", "-A", "scram-sha-256", f"--pwfile={password}", "-E", "UTF8", "--locale=C")
        initdb = [f"{programs}/initdb", "-D", str(data), *options]
        subprocess.run(initdb, stdout=subprocess.DEVNULL, check=True, **runs_as)
        command = [f"{programs}/postgres", "-D", str(data), "-p", str(port), *_OPTIONS]
        server = subprocess.Popen(command, stderr=subprocess.DEVNULL, **runs_as)
        try:
            until(lambda: _makes_database(port), what="the server answers")
            yield f"postgresql://points:{_PASSWORD}@{HOST}:{port}/points"
        finally:
            server.terminate()
            server.wait(_STOPPED_IN_S)


def _makes_database(port: int) -> bool:
    try:
        superuser = f"postgresql://postgres:{_PASSWORD}@{HOST}:{port}/postgres"
        with psycopg.connect(superuser, autocommit=True) as connection:
            connection.execute(sql.SQL("CREATE ROLE points LOGIN PASSWORD {}").format(_PASSWORD))
            connection.execute("CREATE DATABASE points OWNER points")
    except psycopg.OperationalError:
        return False
    return True
