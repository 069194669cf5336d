"""PgBouncer before the real PostgreSQL, in transaction mode, with the configuration that an operator is given."""

import configparser
import os
import pwd
import shutil
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from urllib.parse import urlsplit, urlunsplit

import pytest

from app.local import ports
from tests.conftest import Servers
from tests.operations.beside import beside
from tests.ports import free_port
from tests.unit.deployment.files import ROOT

_PROGRAM = shutil.which("pgbouncer", path=f"{os.environ['PATH']}:/usr/sbin")

# Far fewer than the processes of a test would take, so that they have to share.
SERVER_CONNECTIONS = 3


def given() -> configparser.ConfigParser:
    """Return the configuration that an operator is given."""
    configuration = configparser.ConfigParser(interpolation=None, comment_prefixes=(";",), delimiters=("=",))
    configuration.read(ROOT / "deploy" / "pgbouncer.ini")
    return configuration


@contextmanager
def pooler(servers: Servers, folder: Path, *, sets_sessions: bool = True) -> Iterator[str]:
    """Run it with the addresses of here, if asked without its `connect_query`; yield its URL."""
    if _PROGRAM is None:
        pytest.skip("PgBouncer is not installed (Debian: apt-get install pgbouncer)")
    server, port = urlsplit(servers.database_url), free_port()
    users = folder / "userlist.txt"
    users.write_text(f'"{server.username}" "{server.password}"\n')
    configuration = given()
    connection = configuration["databases"]["points"].replace("port=5432", f"port={server.port}")
    configuration["databases"]["points"] = connection if sets_sessions else connection.partition("connect_query=")[0]
    configuration["pgbouncer"].update(
        {
            "listen_port": str(port),
            "auth_file": str(users),
            "default_pool_size": str(SERVER_CONNECTIONS),
        }
    )
    with (folder / "pgbouncer.ini").open("w") as file:
        configuration.write(file)
    command = [*_not_as_root(), _PROGRAM, str(folder / "pgbouncer.ini")]
    with beside(command, folder, port):
        yield urlunsplit(server._replace(netloc=f"{server.username}:{server.password}@{ports.HOST}:{port}"))


def _not_as_root() -> list[str]:
    """Return what to put before the command: PgBouncer refuses to run as root, and the test's folder is root's."""
    if os.geteuid() != 0:
        return []
    nobody = pwd.getpwnam("nobody")
    capability = ["--inh-caps=+dac_override", "--ambient-caps=+dac_override"]
    return ["setpriv", f"--reuid={nobody.pw_uid}", f"--regid={nobody.pw_gid}", "--clear-groups", *capability, "--"]
