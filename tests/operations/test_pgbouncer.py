"""PgBouncer in transaction mode, with the configuration that an operator is given: web and workers work through it."""

from pathlib import Path

import pytest
from sqlalchemy import text

import migrations
from app.errors import Refused
from app.postgres.connections import engine, session_settings
from app.postgres.database import transaction
from app.settings import settings
from tests.conftest import Servers
from tests.integration import books
from tests.operations.load import issued_exactly, load
from tests.operations.pooler import SERVER_CONNECTIONS, given, pooler
from tests.ports import free_port
from tests.service.deployment import deployment


def test_the_pooler_sets_what_the_service_sets_itself_without_one() -> None:
    query = given()["databases"]["points"].partition("connect_query=")[2].strip("'").replace('"', "")
    assert dict(statement.removeprefix("SET ").split(" = ") for statement in query.split("; ")) == session_settings()


def _server_connections() -> int:
    """Return how many connections PostgreSQL has from the service, this one left out."""
    with transaction() as connection:
        count = text("SELECT count(*) FROM pg_stat_activity WHERE usename = current_user AND pid <> pg_backend_pid()")
        return int(connection.execute(count).scalar_one())


@pytest.mark.long
@pytest.mark.usefixtures("broker", "database")
def test_sends_go_through_the_pooler_and_share_its_few_connections(servers: Servers, tmp_path: Path) -> None:
    with (
        pooler(servers, tmp_path) as url,
        deployment(tmp_path, DATABASE_URL=url, POINTS_DATABASE_POOLER="true") as parts,
    ):
        parts.worker("worker1")
        parts.beat()
        port = free_port()
        parts.web(port)
        engine().dispose()
        with load(port) as callers:
            callers.goes_on(calls=200)
            assert _server_connections() <= SERVER_CONNECTIONS + 1
    assert parts.deaths() == {}
    issued_exactly(callers)


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
