"""Migrations: up, down and up again, one at a time, and in nobody's way."""

import subprocess
import sys
from functools import partial
from typing import Any

import pytest
from sqlalchemy import Connection, Engine, event, inspect, make_url, text

import migrations
from app.errors import Refused
from app.local.postgresql import PostgreSQL
from app.postgres.connections import engine
from app.postgres.partitions import make_ahead
from migrations import fingerprint
from tests.conftest import forget_everything
from tests.deadline import TIMEOUT_S, until
from tests.integration import races


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


def _why_unfit(scratch: Engine, *, whole: bool = True) -> str:
    with scratch.connect() as connection:
        return migrations.why_unfit(connection, whole=whole) or ""


def _migrate_to_9999(connection: Connection, *, read_by: str) -> None:
    """Leave what a migration of a later release would: a column, and its mark."""
    known = {**fingerprint.digests(), "9999": "f00d"}
    connection.exec_driver_sql("ALTER TABLE users ADD COLUMN nickname text")
    connection.exec_driver_sql("UPDATE alembic_version SET version_num = '9999'")
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(fingerprint, "digests", lambda: known)
        fingerprint.write(connection, "9999", read_by)


_UNFIT = [
    ("COMMENT ON TABLE alembic_version IS NULL", "made by no release: its tables have no fingerprint;", True),
    ("COMMENT ON TABLE alembic_version IS NULL; DROP TABLE mails; ALTER TABLE users ADD COLUMN nickname text",
     "no fingerprint (table mails is missing, column nickname of users was added);", False),
    ("DROP TABLE alembic_version", "made by no release: its tables have no fingerprint", True),
    ("UPDATE alembic_version SET version_num = '9999'", "alembic_version says 9999, but the last migration was", True),
    ("UPDATE alembic_version SET version_num = '0000'", "at revision 0000, but this release needs", True),
    ("ALTER TABLE users ADD COLUMN nickname text", "by hand: column nickname of users was added", False),
    ("ALTER TABLE users ALTER COLUMN email DROP NOT NULL", "column email of users was changed", False),
    ("DROP INDEX ix_organizations_sandbox_ahead", "index ix_organizations_sandbox_ahead of organizations is", False),
    ("ALTER TABLE batches DISABLE TRIGGER batches_final_once", "trigger batches_final_once of batches was ch", False),
    ("ALTER TABLE organizations DROP CONSTRAINT ck_organizations_name_length", "_length of organizations is", False),
    ("CREATE OR REPLACE FUNCTION refuse_change() RETURNS trigger LANGUAGE plpgsql AS $$BEGIN RETURN NEW; END$$",
     "function refuse_change() was changed", False),
]  # fmt: skip


def test_a_database_that_is_not_of_this_release_is_refused_and_told_why(
    server_url: str, scratch: Engine, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("DATABASE_URL", server_url)
    forget_everything()
    migrations.upgrade(server_url)
    with scratch.begin() as connection:
        make_ahead(connection, size=1)
        connection.exec_driver_sql(
            "CREATE TABLE of_others (id int); CREATE INDEX ON mails (id); SELECT setval('batches_id_seq', 70)"
        )
        make_ahead(connection, size=1)
    assert _why_unfit(scratch) == "", "neither partitions nor an index or a table of others is a change"
    for statement, sentence, is_noted in _UNFIT:
        with scratch.connect() as connection:
            connection.exec_driver_sql(statement)
            told = migrations.why_unfit(connection, whole=True)
            assert told is not None
            assert sentence in told, statement
            # `/readyz` looks at what is noted alone.
            assert (migrations.why_unfit(connection) == told) is is_noted
            connection.rollback()
    with scratch.begin() as connection:
        connection.exec_driver_sql("COMMENT ON TABLE alembic_version IS NULL")
    for refuses in (migrations.bring_up_to_date, migrations.require_ours, partial(migrations.upgrade, server_url)):
        with pytest.raises(Refused, match="made by no release"):
            refuses()
    with pytest.raises(SystemExit, match="points: The database was made by no release"):
        migrations.end_if_unfit()
    forget_everything()


def test_a_migration_that_was_edited_after_it_ran_makes_another_database(
    server_url: str, scratch: Engine, monkeypatch: pytest.MonkeyPatch
) -> None:
    migrations.upgrade(server_url)
    monkeypatch.setattr(fingerprint, "digests", lambda: {"0001": "edited"})
    assert "made by no release: its migration 0001 is another" in _why_unfit(scratch, whole=False)
    with pytest.raises(Refused, match="its migration 0001 is another"):
        migrations.upgrade(server_url)


def test_code_works_on_what_a_later_release_has_migrated_unless_that_is_for_later_code(
    server_url: str, scratch: Engine
) -> None:
    migrations.upgrade(server_url)
    for read_by, told in (
        (migrations.newest(), None),
        ("9999", "of a newer release: its revision 9999 is for"),
    ):
        with scratch.connect() as connection:
            _migrate_to_9999(connection, read_by=read_by)
            sentence = migrations.why_unfit(connection, whole=True)
            assert sentence is None if told is None else told in (sentence or "")
            connection.rollback()


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
    assert [upgrade.wait(TIMEOUT_S) for upgrade in upgrades] == [0, 0]
    assert _is_migrated(scratch)
