"""The migrations on a server of their own: up, down and up again."""

from typing import Any

import pytest
from sqlalchemy import Connection, Engine, event, make_url, text

import migrations
from app.errors import Refused
from app.local.postgresql import PostgreSQL
from app.postgres.connections import engine
from tests.integration import books


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


@pytest.mark.parametrize("encoding", ["LATIN1", "SQL_ASCII"])
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


def test_a_role_that_may_not_make_tables_is_told_the_grant_that_lets_it(
    unmigrated: PostgreSQL, server_url: str, scratch: Engine
) -> None:
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


def test_the_migrations_go_up_and_down_and_up_again(server_url: str, scratch: Engine) -> None:
    migrations.upgrade(server_url)
    first = catalog(scratch)
    assert any("transactions" in line for line in first)
    migrations.downgrade(server_url, "base")
    assert catalog(scratch) == []
    migrations.upgrade(server_url)
    assert catalog(scratch) == first


@pytest.mark.usefixtures("scratch")
def test_a_migration_waits_for_no_lock_for_long_and_has_a_minute_for_each_statement(server_url: str) -> None:
    limits: set[tuple[str, str]] = set()

    def look(_connection: Connection, cursor: Any, statement: str, *_: object) -> None:
        if "CREATE TABLE organizations" in statement:
            [limit] = cursor.connection.execute(
                "SELECT current_setting('lock_timeout'), current_setting('statement_timeout')"
            )
            limits.add(limit)

    event.listen(Engine, "before_cursor_execute", look)
    try:
        migrations.upgrade(server_url)
    finally:
        event.remove(Engine, "before_cursor_execute", look)
    assert limits == {("5s", "1min")}


def test_upgrading_a_database_that_is_up_to_date_changes_nothing(server_url: str, scratch: Engine) -> None:
    migrations.upgrade(server_url)
    before = catalog(scratch)
    migrations.upgrade(server_url)
    assert catalog(scratch) == before


@pytest.mark.usefixtures("database")
def test_a_database_that_was_migrated_is_known_to_be_up_to_date() -> None:
    assert migrations.is_up_to_date()


def test_a_database_that_was_never_migrated_is_known_not_to_be(
    server_url: str, scratch: Engine, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("DATABASE_URL", server_url)
    assert not migrations.is_up_to_date()
    migrations.upgrade(server_url)
    assert migrations.is_up_to_date()
    migrations.downgrade(server_url, "base")
    assert not migrations.is_up_to_date()
    assert catalog(scratch) == []
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
