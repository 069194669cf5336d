"""No migration disturbs the release before, unless it says why it may; and what does is refused in a sentence."""

from pathlib import Path

import pytest
from alembic.script import ScriptDirectory
from sqlalchemy import Engine
from sqlalchemy.exc import OperationalError

import migrations
from tests.integration.disturbing import complaint

_VERSIONS = Path(migrations.__file__).parent / "versions"

# Rows of 0001. Later migrations run on them, so this text stays as it is.
_ROWS = """
    INSERT INTO organizations (name) VALUES ('One');
    INSERT INTO users (email, email_key, first_name, last_name) VALUES ('a@example.com', 'a@example.com', 'A', 'B');
    INSERT INTO batches (organization_id, sandbox, status, amount, atomic, recipient_count, emails, issued_at,
                         debited_count, debited_amount, current_balance, organization_name, last_refill)
    VALUES (1, false, 'issued', 5, false, 1, '{a@example.com}', clock_timestamp(), 1, 5, 0, 'One', 0);
    INSERT INTO transactions (organization_id, batch_id, position, sandbox, user_id, debited, credited, balance, email)
    VALUES (1, 1, 0, false, 1, true, true, 0, 'a@example.com');
"""

_PLANTED = '''
from contextlib import nullcontext

from alembic import op

revision = "9999"
down_revision = "{before}"
{mark}
SQL = """{sql}"""


def upgrade() -> None:
    with op.get_context().autocommit_block() if "CONCURRENTLY" in SQL else nullcontext():
        for statement in SQL.split(";"):
            op.execute(statement)
'''
_SMALL = 'LOCKS_BECAUSE = "An installation has a handful of members, so reading them takes no time."'
_UNSAID = "and no READ_BY says that the release before lives with that."

# Each with its mark, and what is said of it; nothing of what may run on a service in use.
_CASES = [
    ("ALTER TABLE batches ALTER failures TYPE bigint", "", "batches is written anew."),
    ("TRUNCATE kept_answers", "", "kept_answers is written anew."),
    ("CREATE INDEX i ON transactions (email)", "",
     "transactions is locked against writes while rows of transactions are read."),
    ("ALTER TABLE users ADD CONSTRAINT c CHECK (id > 0) NOT VALID; ALTER TABLE users VALIDATE CONSTRAINT c", "",
     "users is locked against writes while rows of users are read."),
    ("ALTER TABLE users ADD note int; CREATE TABLE notes AS SELECT id FROM batches", "",
     "users is locked against writes while rows of batches are read."),
    ("ALTER TABLE users ADD CONSTRAINT c CHECK (id > 0) NOT VALID", "", None),
    ("DROP INDEX CONCURRENTLY IF EXISTS j; CREATE INDEX CONCURRENTLY j ON batches (label)", "", None),
    ("DROP INDEX ix_uploads_age", 'READ_BY = "0001"', "Squawk refuses require-concurrent-index-deletion."),
    ("UPDATE users SET first_name = last_name", "", "rows of users are changed in one go."),
    ("UPDATE users SET first_name = last_name", 'LOCKS_BECAUSE = "A"', "Its LOCKS_BECAUSE gives no reason to judge."),
    ("CREATE INDEX i ON members (first_name)", _SMALL, None),
    ("ALTER TABLE members ADD note int", _SMALL, "It disturbs nobody, so it needs no LOCKS_BECAUSE."),
    ("ALTER TABLE batches ADD note int NOT NULL", "",
     'PostgreSQL refuses it: column "note" of relation "batches" contains null values.'),
    ("ALTER TABLE batches ADD note int NOT NULL DEFAULT 0; ALTER TABLE batches ALTER note DROP DEFAULT", "",
     f"column note of batches must be given, {_UNSAID}"),
    ("ALTER TABLE batches ADD note int NOT NULL DEFAULT 0; CREATE TABLE notes (id bigint REFERENCES users)", "", None),
    ("ALTER TABLE kept_answers RENAME TO answers", "", f"table kept_answers is gone, {_UNSAID}"),
    ("ALTER TABLE batches DROP digest", "", f"column digest of batches is gone, {_UNSAID}"),
    ("ALTER TABLE batches DROP digest", 'READ_BY = "0001"', None),
    ("ALTER TABLE batches DROP digest", 'READ_BY = "9999"',
     "READ_BY is 9999, but the code of {before} runs on until it is replaced."),
    ("ALTER TABLE users ADD note int; DROP INDEX CONCURRENTLY IF EXISTS k", "",
     "column note of users was added by a part of it, after which it cannot run again."),  # The last: it is not undone.
]  # fmt: skip


@pytest.fixture
def filled(scratch: Engine, server_url: str) -> Engine:
    """Give a test a database of the first release, with rows."""
    migrations.upgrade(server_url, "0001")
    with scratch.begin() as connection:
        connection.exec_driver_sql(_ROWS)
    return scratch


def test_each_migration_leaves_the_release_before_at_work_or_says_why_not(filled: Engine, server_url: str) -> None:
    config = migrations._config(server_url)
    first, *others = reversed(list(ScriptDirectory.from_config(config).walk_revisions()))
    assert (first.revision, {Path(one.path) for one in (first, *others)}) == ("0001", set(_VERSIONS.glob("[0-9]*.py")))
    for script in others:
        assert complaint(filled, config, script) is None, script.path
        migrations.upgrade(server_url, script.revision)


def test_what_would_hold_up_or_break_the_release_before_is_refused(
    filled: Engine, server_url: str, tmp_path: Path
) -> None:
    migrations.upgrade(server_url)
    config, before = migrations._config(server_url), migrations.newest()
    config.set_main_option("path_separator", "newline")
    for number, (sql, mark, sentence) in enumerate(_CASES):
        planted = tmp_path / str(number) / "9999_planted.py"
        planted.parent.mkdir()
        planted.write_text(_PLANTED.format(before=before, mark=mark, sql=sql))
        config.set_main_option("version_locations", f"{_VERSIONS}\n{planted.parent}")
        script = ScriptDirectory.from_config(config).get_revision("9999")
        assert complaint(filled, config, script) == (sentence and sentence.format(before=before)), sql


def test_an_index_whose_drop_waits_or_was_cut_off_is_no_change(filled: Engine) -> None:
    with filled.connect() as reader, filled.connect().execution_options(isolation_level="AUTOCOMMIT") as dropping:
        reader.exec_driver_sql("SELECT FROM uploads")
        dropping.exec_driver_sql("SET statement_timeout = '50ms'")
        with pytest.raises(OperationalError, match="statement timeout"):
            dropping.exec_driver_sql("DROP INDEX CONCURRENTLY ix_uploads_age")
        assert migrations.why_unfit(reader, whole=True) is None
