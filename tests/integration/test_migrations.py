"""Migrations: up, down and up again, one at a time, and in nobody's way."""

import subprocess
import sys
from typing import Any

import pytest
from sqlalchemy import Connection, Engine, event, inspect, make_url, text

import migrations
from app.errors import Refused
from app.local.postgresql import PostgreSQL
from app.postgres.connections import engine
from tests.deadline import until
from tests.integration import books, races


def catalog(scratch: Engine) -> list[str]:
    """Return a line for each column, constraint, index and storage option, as PostgreSQL itself words it."""
    with scratch.connect() as connection:
        return list(connection.execute(_CATALOG).scalars())


_CATALOG = text("""
    SELECT concat_ws(' ', 'column', table_name, column_name, data_type, udt_name, collation_name, is_nullable,
                     column_default, is_identity, identity_generation) AS line
    FROM information_schema.columns WHERE table_schema = 'public' AND table_name <> 'alembic_version'
    UNION ALL
    SELECT concat_ws(' ', 'constraint', conrelid::regclass, conname, pg_get_constraintdef(oid))
    FROM pg_constraint
    WHERE connamespace = 'public'::regnamespace AND contype <> 'n' AND conname <> 'alembic_version_pkc'
    UNION ALL
    SELECT concat_ws(' ', 'index', indexdef) FROM pg_indexes
    WHERE schemaname = 'public' AND tablename <> 'alembic_version'
    UNION ALL
    SELECT concat_ws(' ', 'trigger', pg_get_triggerdef(oid)) FROM pg_trigger WHERE NOT tgisinternal
    UNION ALL
    SELECT concat_ws(' ', 'options', relname, reloptions) FROM pg_class
    WHERE relnamespace = 'public'::regnamespace AND reloptions IS NOT NULL
    ORDER BY line
""")


@races.first_of("encoding", ["LATIN1", "SQL_ASCII"])
def test_a_database_that_cannot_hold_every_name_is_refused(unmigrated: PostgreSQL, encoding: str) -> None:
    url = make_url(unmigrated.url())
    narrow = f"CREATE DATABASE narrow OWNER {url.username} ENCODING '{encoding}' TEMPLATE template0 LOCALE 'C'"
    with unmigrated._connect_as_superuser() as connection:
        connection.execute(narrow.encode())
        try:
            with pytest.raises(Refused, match=rf"encoding is {encoding}, but must be UTF8"):
                migrations.upgrade(url.set(database="narrow").render_as_string(hide_password=False))
        finally:
            connection.execute("DROP DATABASE narrow WITH (FORCE)")


def test_a_postgresql_that_is_too_old_is_refused(
    server_url: str, scratch: Engine, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(migrations, "OLDEST_POSTGRESQL", 99)
    with pytest.raises(Refused, match=r"PostgreSQL is 18\..*, but must be 99 or newer"):
        migrations.upgrade(server_url)
    assert catalog(scratch) == []


def test_a_role_without_rights_is_told_the_grant(unmigrated: PostgreSQL, server_url: str, scratch: Engine) -> None:
    url = make_url(server_url).set(username="Newcomer", password="secret")
    newcomer = url.render_as_string(hide_password=False)
    with unmigrated._connect_as_superuser() as superuser:
        superuser.execute("""CREATE ROLE "Newcomer" LOGIN PASSWORD 'secret'""")
        try:
            with pytest.raises(Refused, match='The role "Newcomer" may not make tables in the schema public') as caught:
                migrations.upgrade(newcomer)
            assert catalog(scratch) == []
            with scratch.begin() as owner:
                owner.exec_driver_sql(caught.value.sentence.rpartition(": ")[2].rstrip("."))
            migrations.upgrade(newcomer)
            assert catalog(scratch) != []
        finally:
            with scratch.begin() as owner:
                owner.exec_driver_sql("DROP SCHEMA public CASCADE; CREATE SCHEMA public")
            superuser.execute('DROP ROLE "Newcomer"')


def test_the_migrations_go_up_and_down_and_up_again(
    server_url: str, scratch: Engine, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("DATABASE_URL", server_url)
    limits: set[tuple[str, str]] = set()

    def look(_connection: Connection, cursor: Any, statement: str, *_: object) -> None:
        if "CREATE TABLE organizations" in statement:
            [limit] = cursor.connection.execute(
                "SELECT current_setting('lock_timeout'), current_setting('statement_timeout')"
            )
            limits.add(limit)

    assert not migrations.is_up_to_date()
    event.listen(Engine, "before_cursor_execute", look)
    try:
        migrations.upgrade(server_url)
    finally:
        event.remove(Engine, "before_cursor_execute", look)
    assert limits == {("5s", "1min")}, "it waits for no lock for long and has a minute for each statement"
    first = catalog(scratch)
    assert any("transactions" in line for line in first)
    assert migrations.is_up_to_date()
    migrations.upgrade(server_url)
    assert catalog(scratch) == first, "there was nothing to change"
    migrations.downgrade(server_url, "base")
    assert catalog(scratch) == []
    assert not migrations.is_up_to_date()
    migrations.upgrade(server_url)
    assert catalog(scratch) == first
    engine().dispose()


@pytest.mark.usefixtures("database")
def test_code_works_on_a_database_that_a_later_release_has_migrated() -> None:
    books.execute("UPDATE alembic_version SET version_num = '9999'")
    try:
        assert migrations.is_up_to_date()
        migrations.bring_up_to_date()
        assert migrations.revision() == "9999"
    finally:
        books.execute(f"UPDATE alembic_version SET version_num = '{migrations.newest()}'")


def _is_migrated(scratch: Engine) -> bool:
    with scratch.connect() as connection:
        found = connection.exec_driver_sql("SELECT version_num FROM alembic_version").scalar_one_or_none()
        return found == migrations.newest() and "webhook_deliveries" in inspect(connection).get_table_names()


def _upgrade_in_a_process(url: str) -> "subprocess.Popen[bytes]":
    """Upgrade as a deployment does. (Alembic keeps what it works on in a global, so threads would not do.)"""
    return subprocess.Popen([sys.executable, "-c", f"import migrations; migrations.upgrade({url!r})"])


def _awaited(scratch: Engine) -> list[str]:
    """Return the kinds of locks that connections wait for."""
    with scratch.connect() as connection:
        return list(connection.exec_driver_sql("SELECT locktype FROM pg_locks WHERE NOT granted ORDER BY 1").scalars())


def _asking(scratch: Engine) -> int:
    """Return how many upgrades ask again and again whether it is their turn."""
    with scratch.connect() as connection:
        asking = "SELECT count(*) FROM pg_stat_activity WHERE state = 'idle' AND query LIKE '%%pg_try_advisory_lock%%'"
        return int(connection.exec_driver_sql(asking).scalar_one())


def test_of_two_upgrades_at_once_one_waits_and_both_succeed(server_url: str, scratch: Engine) -> None:
    with scratch.connect() as connection:
        connection.exec_driver_sql("SET idle_in_transaction_session_timeout = 0")
        # A table of the same name, not committed yet, holds up whichever upgrade comes to make its own.
        connection.exec_driver_sql("CREATE TABLE alembic_version ()")
        upgrades = [_upgrade_in_a_process(server_url) for _ in range(2)]
        until(lambda: _asking(scratch) == 1, what="one of the upgrades waits for its turn")
        until(lambda: _awaited(scratch) == ["transactionid"], what="the other waits for the table")
        connection.rollback()
    assert [upgrade.wait(races.PATIENCE_S) for upgrade in upgrades] == [0, 0]
    assert _is_migrated(scratch)
