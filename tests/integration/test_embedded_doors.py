"""The doors of the embedded servers: this machine alone, with the password, and files that only their owner reads."""

import os
import stat
from collections.abc import Iterator
from pathlib import Path

import psycopg
import pytest
from redis import Redis

from app.local.datadir import DataDir
from app.local.postgresql import PostgreSQL
from app.local.valkey import Valkey
from tests.conftest import Servers


@pytest.fixture
def careless() -> Iterator[None]:
    """Be somebody whose new files everybody may read."""
    before = os.umask(0)
    yield
    os.umask(before)


def test_nobody_enters_postgresql_without_the_password_or_from_elsewhere(servers: Servers) -> None:
    with psycopg.connect(servers.database_url) as connection:
        row = connection.execute("SHOW listen_addresses").fetchone()
        password = connection.info.password
    assert row == ("127.0.0.1",)
    assert password
    with pytest.raises(psycopg.OperationalError, match="password authentication failed"):
        psycopg.connect(servers.database_url, password=f"not {password}")


def test_the_log_of_postgresql_repeats_no_value_of_a_statement_that_failed(unmigrated: PostgreSQL) -> None:
    with psycopg.connect(unmigrated.url()) as connection, pytest.raises(psycopg.DataError):
        connection.execute("SELECT 'ann@example.com'::integer")
    assert "ann@" not in (unmigrated._datadir.path / "postgresql.log").read_text()


def test_valkey_keeps_what_it_is_told_and_listens_to_this_machine_alone(servers: Servers) -> None:
    with Redis.from_url(servers.redis_url, decode_responses=True) as client:
        found = client.config_get("bind", "appendonly", "maxmemory-policy", "save")
    assert found == {"bind": "127.0.0.1", "appendonly": "yes", "maxmemory-policy": "noeviction", "save": ""}


@pytest.mark.usefixtures("careless")
def test_the_configuration_of_valkey_is_its_owners_and_takes_any_folder(tmp_path: Path) -> None:
    folder = tmp_path / 'a "quoted" \\ one'
    folder.mkdir()
    Valkey(DataDir(folder)).prepare()
    configuration = folder / "valkey/valkey.conf"
    assert stat.S_IMODE(configuration.stat().st_mode) == 0o600
    assert f'dir "{tmp_path}/a \\"quoted\\" \\\\ one/valkey"\n' in configuration.read_text()


@pytest.mark.usefixtures("careless")
def test_no_file_with_a_password_is_left_where_postgresql_is_made(tmp_path: Path) -> None:
    datadir = DataDir(tmp_path)
    datadir.path.chmod(0o755)
    if os.geteuid() == 0:
        os.chown(tmp_path, 65534, 65534)
    PostgreSQL(datadir).prepare()
    assert [path.name for path in tmp_path.rglob("*password*")] == []
    assert stat.S_IMODE((tmp_path / "postgresql").stat().st_mode) == 0o700
