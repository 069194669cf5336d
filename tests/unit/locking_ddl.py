"""What a migration would lock: its SQL, written down and not run, is read by Squawk and by a few rules of our own.

A migration runs while the service works. What holds a table for longer than a moment stops every drain; what takes
a name away breaks the processes of the release before, which run on until they are replaced (docs/migrations.md).
"""

import io
import json
import re
import subprocess
import sys
from pathlib import Path

from alembic import command
from alembic.script import Script

import migrations

# The oldest PostgreSQL that the service runs on.
_POSTGRESQL = "15"

# Squawk's rules that are about taste, about time limits (migrations/env.py sets them for all), or about being run
# again after half of it failed (one transaction a migration). All its others hold here.
_NOT_OURS = (
    "require-lock-timeout",
    "require-statement-timeout",
    "prefer-robust-stmts",
    "prefer-bigint-over-int",
    "prefer-bigint-over-smallint",
    "prefer-text-field",
    "prefer-identity",
    "prefer-timestamptz",
)

# What Squawk lets pass. The version number that Alembic keeps is a row of its own table.
_OURS = {
    "locks-or-empties-a-table": r"(?:LOCK|TRUNCATE|CLUSTER|VACUUM)\b",
    "rewrites-a-table": r"ALTER TABLE[^;]*\bSET (?:LOGGED|UNLOGGED|TABLESPACE|ACCESS METHOD)\b",
    "changes-rows-in-one-go": r"(?:UPDATE(?: ONLY)?|DELETE FROM(?: ONLY)?) +(?!alembic_version\b)",
}
_BODY = re.compile(r"\$(\w*)\$.*?\$\1\$", re.DOTALL)

# An exemption is a sentence that a reader can judge, and not a word.
_REASON_LENGTH_MIN = 40


def sql_of(script: Script) -> str:
    """Return what a migration's upgrade would have PostgreSQL do.

    Raises:
        Exception: it asks the database for something, and so cannot be written down beforehand.
    """
    before = script.down_revision or "base"
    assert isinstance(before, str), "the migrations stand in one line"
    config = migrations._config("")
    config.output_buffer = io.StringIO()
    command.upgrade(config, f"{before}:{script.revision}", sql=True)
    return config.output_buffer.getvalue()


def locking_rules_broken(sql: str) -> set[str]:
    """Return the names of the rules that this SQL breaks; none for SQL that a working service does not notice."""
    squawk = Path(sys.executable).with_name("squawk")
    options = ["--reporter=json", f"--pg-version={_POSTGRESQL}", f"--exclude={','.join(_NOT_OURS)}"]
    done = subprocess.run(
        [squawk, *options, "--stdin-filepath=upgrade.sql"], input=sql, capture_output=True, text=True, check=False
    )
    assert done.stdout.startswith("["), f"Squawk did not judge: {done.stderr}"
    statements = _BODY.sub("''", sql)
    ours = {name for name, form in _OURS.items() if re.search(rf"^\s*{form}", statements, re.MULTILINE)}
    return ours | {found["rule_name"] for found in json.loads(done.stdout)}


def complaint(sql: str, locks_because: str | None) -> str | None:
    """Return what is wrong with a migration, in a sentence, or None.

    `locks_because` is the migration's own `LOCKS_BECAUSE`: why it may lock what is in use. It exempts the
    migration, and must not outlive its need.
    """
    broken = locking_rules_broken(sql)
    if locks_because is None:
        return f"It would disturb a working service: {', '.join(sorted(broken))}." if broken else None
    if not broken:
        return "It disturbs nobody, so it needs no LOCKS_BECAUSE."
    return None if len(locks_because) >= _REASON_LENGTH_MIN else "Its LOCKS_BECAUSE gives no reason to judge."
