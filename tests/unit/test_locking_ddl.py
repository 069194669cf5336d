"""No migration disturbs a working service, unless it says why it may; and the check sees each way to do so."""

from pathlib import Path

import pytest
from alembic.script import Script, ScriptDirectory

import migrations
from tests.unit.locking_ddl import complaint, locking_rules_broken, sql_of

_SCRIPTS = list(ScriptDirectory.from_config(migrations._config("")).walk_revisions())


def _in_one_transaction(statements: str) -> str:
    """Return SQL as Alembic writes it down."""
    return (
        f"BEGIN;\n\n{statements};\n\nUPDATE alembic_version SET version_num='2' WHERE version_num = '1';\n\nCOMMIT;\n"
    )


@pytest.mark.parametrize("script", _SCRIPTS, ids=lambda script: script.revision)
def test_a_migration_disturbs_no_working_service_or_says_why_it_may(script: Script) -> None:
    assert complaint(sql_of(script), getattr(script.module, "LOCKS_BECAUSE", None)) is None


def test_the_sql_of_every_migration_is_read() -> None:
    first = next(script for script in _SCRIPTS if script.down_revision is None)
    assert "CREATE TABLE organizations" in sql_of(first)
    files = (Path(migrations.__file__).parent / "versions").glob("[0-9]*.py")
    assert {Path(script.path) for script in _SCRIPTS} == set(files)


@pytest.mark.parametrize(
    "statements",
    [
        "CREATE UNIQUE INDEX i ON users (first_name)",
        "DROP INDEX ix_users_created_at",
        "ALTER TABLE users ADD CONSTRAINT c CHECK (first_name > '')",
        "ALTER TABLE users ADD CONSTRAINT c FOREIGN KEY (a) REFERENCES organizations (id)",
        "ALTER TABLE users ADD CONSTRAINT c CHECK (a > 0) NOT VALID;\nALTER TABLE users VALIDATE CONSTRAINT c",
        "ALTER TABLE users ALTER COLUMN balance TYPE numeric",
        "ALTER TABLE users ALTER COLUMN first_name SET NOT NULL",
        "ALTER TABLE users ADD COLUMN at timestamptz DEFAULT clock_timestamp()",
        "ALTER TABLE users ADD COLUMN a bigint NOT NULL",
        "ALTER TABLE users DROP COLUMN first_name",
        "ALTER TABLE users RENAME COLUMN first_name TO name",
        "ALTER TABLE users SET UNLOGGED",
        "LOCK TABLE users",
        "UPDATE users SET first_name = last_name",
        "CREATE TABLE",
    ],
)
def test_should_refuse_what_would_hold_up_a_drain_or_break_the_release_before(statements: str) -> None:
    assert complaint(_in_one_transaction(statements), None) is not None


@pytest.mark.parametrize(
    "statements",
    [
        "CREATE TABLE t (id bigint NOT NULL, CONSTRAINT pk_t PRIMARY KEY (id));\nCREATE INDEX i ON t (id)",
        "ALTER TABLE users ADD COLUMN a bigint",
        "ALTER TABLE users ADD COLUMN a bigint DEFAULT 0 NOT NULL",
        "ALTER TABLE users ADD CONSTRAINT c CHECK (a > 0) NOT VALID",
        "ALTER TABLE users VALIDATE CONSTRAINT c",
        "COMMIT;\nCREATE INDEX CONCURRENTLY i ON users (first_name);\nBEGIN",
        "COMMIT;\nDROP INDEX CONCURRENTLY ix_users_created_at;\nBEGIN",
        "CREATE FUNCTION f() RETURNS void LANGUAGE plpgsql AS $$\nBEGIN\nUPDATE users SET a = 1;\nEND $$",
    ],
)
def test_should_let_pass_what_a_working_service_does_not_notice(statements: str) -> None:
    assert locking_rules_broken(_in_one_transaction(statements)) == set()
