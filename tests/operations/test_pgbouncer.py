"""PgBouncer in transaction mode, with the configuration that an operator is given: web and workers work through it."""

import configparser
import os
import pwd
import shutil
import signal
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from urllib.parse import urlsplit, urlunsplit

import pytest
from sqlalchemy import text

import migrations
from app.errors import Refused
from app.local import ports
from app.postgres.connections import engine, new_engine, session_settings
from app.postgres.database import transaction
from app.settings import settings
from tests.conftest import Servers
from tests.deadline import comes_true
from tests.integration import books
from tests.operations.load import issued_exactly, load
from tests.ports import free_port
from tests.service.deployment import STARTED_IN_S, deployment
from tests.service.parts import Part
from tests.unit.deployment.files import ROOT

_PROGRAM = shutil.which("pgbouncer", path=f"{os.environ['PATH']}:/usr/sbin")

# Far fewer than the processes of the test would take, so that they have to share.
_SERVER_CONNECTIONS = 3


def _given() -> configparser.ConfigParser:
    """Return the configuration that an operator is given."""
    configuration = configparser.ConfigParser(interpolation=None, comment_prefixes=(";",), delimiters=("=",))
    configuration.read(ROOT / "deploy" / "pgbouncer.ini")
    return configuration


def test_the_pooler_sets_what_the_service_sets_itself_without_one() -> None:
    query = _given()["databases"]["points"].partition("connect_query=")[2].strip("'").replace('"', "")
    assert dict(statement.removeprefix("SET ").split(" = ") for statement in query.split("; ")) == session_settings()


@dataclass(frozen=True, kw_only=True)
class Pooler:
    url: str


@pytest.fixture
def pooler(servers: Servers, database: None, tmp_path: Path) -> Iterator[Pooler]:
    """Run PgBouncer before the real PostgreSQL, with the operator's configuration and the addresses of here."""
    if _PROGRAM is None:
        pytest.skip("PgBouncer is not installed (Debian: apt-get install pgbouncer)")
    server, port = urlsplit(servers.database_url), free_port()
    users = tmp_path / "userlist.txt"
    users.write_text(f'"{server.username}" "{server.password}"\n')
    configuration = _given()
    connection = configuration["databases"]["points"].replace("port=5432", f"port={server.port}")
    configuration["databases"]["points"] = connection
    configuration["pgbouncer"].update(
        {
            "listen_port": str(port),
            "auth_file": str(users),
            "default_pool_size": str(_SERVER_CONNECTIONS),
        }
    )
    with (tmp_path / "pgbouncer.ini").open("w") as file:
        configuration.write(file)
    command = [*_not_as_root(), _PROGRAM, str(tmp_path / "pgbouncer.ini")]
    part = Part("pgbouncer", command, os.environ, tmp_path / "pgbouncer.log")
    part.start()
    try:
        url = urlunsplit(server._replace(netloc=f"{server.username}:{server.password}@{ports.HOST}:{port}"))
        assert comes_true(lambda: not ports.is_free(port), within_s=STARTED_IN_S), (
            tmp_path / "pgbouncer.log"
        ).read_text()
        yield Pooler(url=url)
    finally:
        part.hold_down(signal.SIGKILL)


def _not_as_root() -> list[str]:
    """Return what to put before the command: PgBouncer refuses to run as root, and the test's folder is root's."""
    if os.geteuid() != 0:
        return []
    nobody = pwd.getpwnam("nobody")
    capability = ["--inh-caps=+dac_override", "--ambient-caps=+dac_override"]
    return ["setpriv", f"--reuid={nobody.pw_uid}", f"--regid={nobody.pw_gid}", "--clear-groups", *capability, "--"]


def _server_connections() -> int:
    """Return how many connections PostgreSQL has from the service, this one left out."""
    with transaction() as connection:
        count = text("SELECT count(*) FROM pg_stat_activity WHERE usename = current_user AND pid <> pg_backend_pid()")
        return int(connection.execute(count).scalar_one())


@pytest.mark.usefixtures("broker")
def test_sends_go_through_the_pooler_and_share_its_few_connections(pooler: Pooler, tmp_path: Path) -> None:
    with deployment(tmp_path, DATABASE_URL=pooler.url, POINTS_DATABASE_POOLER="true") as parts:
        parts.worker("worker1")
        parts.beat()
        port = free_port()
        parts.web(port)
        engine().dispose()
        with load(port) as callers:
            callers.goes_on(calls=200)
            assert _server_connections() <= _SERVER_CONNECTIONS + 1
            # What leans on a session most: an import by COPY, and an audit of one snapshot.
            people = tmp_path / "people.csv"
            people.write_text("email,first_name,last_name\n0.0@example.com,Ada,Lovelace\n")
            parts.points("users", "import", str(people))
            assert parts.points("audit")["balanced"] is True
        assert parts.points("users", "show", "0.0@example.com")["balance"] == 1
    assert parts.deaths() == {}
    issued_exactly(callers)


def test_a_connection_of_the_pooler_begins_with_what_the_service_asks_for(pooler: Pooler) -> None:
    pooled = new_engine(pooler.url, pool_size=1, pooler=True)
    try:
        with pooled.begin() as connection:
            query = text("SELECT name, setting FROM pg_settings WHERE name = ANY(:names)")
            shown = connection.execute(query, {"names": [*session_settings(), "TimeZone"]}).all()
    finally:
        pooled.dispose()
    assert {row.name.lower(): row.setting for row in shown} == session_settings()


@pytest.mark.usefixtures("database")
def test_should_refuse_to_migrate_through_a_pooler(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("POINTS_DATABASE_POOLER", "true")
    settings.cache_clear()
    migrations.bring_up_to_date()  # There is nothing to do, so it may start.
    books.execute("UPDATE alembic_version SET version_num = '0000'")
    try:
        with pytest.raises(Refused, match="POINTS_DATABASE_POOLER=false"):
            migrations.bring_up_to_date()
    finally:
        books.execute(f"UPDATE alembic_version SET version_num = '{migrations.newest()}'")
