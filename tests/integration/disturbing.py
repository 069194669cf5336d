"""How a migration disturbs the processes of the release before, which work while it runs and for minutes after it.

It is run on a database with rows and looked at from inside, before each of its transactions ends; then it is undone.
Squawk reads its SQL beside that: it knows the older versions of PostgreSQL, and what runs outside a transaction.
"""

import io
import json
import subprocess
import sys
from pathlib import Path
from typing import NamedTuple

from alembic import command
from alembic.config import Config
from alembic.script import Script
from sqlalchemy import Connection, Engine, event, text
from sqlalchemy.exc import DBAPIError

from migrations import fingerprint

# The oldest PostgreSQL that the service runs on.
_POSTGRESQL = "15"

# Squawk's rules that are about taste, about time limits (migrations/env.py sets them for all), about being run again
# after half of it failed (one transaction a migration), or about what is gone (which is compared below).
_NOT_OURS = (
    "require-lock-timeout",
    "require-statement-timeout",
    "prefer-robust-stmts",
    "prefer-bigint-over-int",
    "prefer-bigint-over-smallint",
    "prefer-text-field",
    "prefer-identity",
    "prefer-timestamptz",
    "ban-drop-column",
    "ban-drop-constraint",
    "ban-drop-default",
    "ban-drop-function",
    "ban-drop-table",
    "renaming-column",
    "renaming-object",
    "renaming-table",
)

# An exemption is a sentence that a reader can judge, and not a word.
_REASON_LENGTH_MIN = 40


def complaint(engine: Engine, config: Config, script: Script) -> str | None:
    """Say in a sentence what is wrong with a migration; None if it may run on a service in use.

    Its own `LOCKS_BECAUSE` says why it may lock what is in use, and must not outlive its need. Its `READ_BY` names the
    oldest revision whose code may still run, and what that does not use may be gone.
    """
    before = script.down_revision
    assert isinstance(before, str), "0001 makes a new database, which nobody uses"
    seen = _seen(engine, config, script)
    if isinstance(seen, str):
        return seen
    disturbs = [*seen.disturbs, *(f"Squawk refuses {rule}" for rule in _rules_broken(_sql_of(config, script, before)))]
    reason, read_by = (getattr(script.module, name, None) for name in ("LOCKS_BECAUSE", "READ_BY"))
    if seen.breaks and read_by is None:
        return f"{seen.breaks[0]}, and no READ_BY says that the release before lives with that."
    if read_by is not None and not "0001" <= read_by <= before:
        return f"READ_BY is {read_by}, but the code of {before} runs on until it is replaced."
    if reason is None:
        return f"{disturbs[0]}." if disturbs else None
    if not disturbs:
        return "It disturbs nobody, so it needs no LOCKS_BECAUSE."
    return None if len(reason) >= _REASON_LENGTH_MIN else "Its LOCKS_BECAUSE gives no reason to judge."


class _State(NamedTuple):
    """The tables by their oid, with their names and files; what has a name; which columns an INSERT must give."""

    tables: dict[int, tuple[str, int]]
    named: set[str]
    required: set[str]

    @classmethod
    def of(cls, connection: Connection) -> "_State":
        return cls(
            tables={row.oid: (row.name, row.file) for row in connection.execute(_TABLES)},
            named=set(fingerprint.schema(connection)[1]),
            required=set(connection.execute(_REQUIRED).scalars()),
        )

    def rewritten(self, after: "_State") -> set[str]:
        """Return the tables that are in new files."""
        return {name for oid, (name, file) in self.tables.items() if after.tables.get(oid, (name, file))[1] != file}

    def broken(self, after: "_State") -> list[str]:
        """Say what the statements of the release before no longer find, or do not give; a table before its columns."""
        gone = sorted(self.named - after.named, key=lambda name: (not name.startswith("table "), name))
        tables = {name.removeprefix("table ") for name in self.named & after.named}
        needed = {name for name in after.required - self.required if name.partition(" of ")[2] in tables}
        return [f"{name} is gone" for name in gone] + [f"{name} must be given" for name in sorted(needed)]


class _Seen(Exception):
    """A migration was seen whole: what it did to others, and what it leaves. It is undone."""

    def __init__(self, disturbs: list[str], breaks: list[str]) -> None:
        super().__init__()
        self.disturbs, self.breaks = disturbs, breaks


def _seen(engine: Engine, config: Config, script: Script) -> _Seen | str:
    """Run a migration, look at each of its transactions before it ends, and undo the last."""
    with engine.connect() as connection:
        before = _State.of(connection)
    known = {"oids": list(before.tables), "names": [name for name, _ in before.tables.values()]}
    held: list[str] = []

    def look(connection: Connection) -> None:
        held.extend(connection.execute(_HELD, known).scalars())
        after = _State.of(connection)
        if connection.execute(_REVISION).scalar_one() != script.revision:
            changed = fingerprint.differing(before.named, after.named)
            held.extend(f"{one} by a part of it, after which it cannot run again" for one in changed)
        else:
            rewritten = [f"{name} is written anew" for name in sorted(before.rewritten(after))]
            raise _Seen(rewritten + sorted(held), before.broken(after))

    event.listen(Engine, "commit", look)
    try:
        command.upgrade(config, script.revision)
    except _Seen as seen:
        return seen
    except DBAPIError as error:
        return f"PostgreSQL refuses it: {str(error.orig).splitlines()[0]}."
    finally:
        event.remove(Engine, "commit", look)
    raise AssertionError(f"{script.revision} did not run")


def _sql_of(config: Config, script: Script, before: str) -> str:
    """Return what a migration would have PostgreSQL do; it fails if the migration asks the database for something."""
    config.output_buffer = io.StringIO()
    command.upgrade(config, f"{before}:{script.revision}", sql=True)
    return config.output_buffer.getvalue()


def _rules_broken(sql: str) -> list[str]:
    squawk = Path(sys.executable).with_name("squawk")
    options = ["--reporter=json", f"--pg-version={_POSTGRESQL}", f"--exclude={','.join(_NOT_OURS)}"]
    done = subprocess.run(
        [squawk, *options, "--stdin-filepath=upgrade.sql"], input=sql, capture_output=True, text=True, check=False
    )
    assert done.stdout.startswith("["), f"Squawk did not judge: {done.stderr}"
    return sorted({found["rule_name"] for found in json.loads(done.stdout)})


_REVISION = text("SELECT version_num FROM alembic_version")
# A partition goes by the name of its table.
_TABLES = text("""
    SELECT oid, CAST(CAST(coalesce(pg_partition_root(oid), oid) AS regclass) AS text) AS name, relfilenode AS file
    FROM pg_class WHERE relnamespace = CAST('public' AS regnamespace) AND relkind IN ('r', 'p')
        AND relname <> 'alembic_version'
""")
_REQUIRED = text("""
    SELECT format('column %s of %s', attname, relname) FROM pg_attribute JOIN pg_class ON pg_class.oid = attrelid
    WHERE relnamespace = CAST('public' AS regnamespace) AND relkind IN ('r', 'p') AND NOT relispartition AND attnum > 0
        AND NOT attisdropped AND attnotnull AND NOT atthasdef AND attidentity = ''
""")
# Each scan is counted, also of a table without rows. A change of the catalogue alone counts none.
_HELD = text("""
    WITH known AS (SELECT * FROM unnest(CAST(:oids AS oid[]), CAST(:names AS text[])) AS known (oid, name)),
    locked AS (
        SELECT name FROM known JOIN pg_locks ON relation = known.oid AND pid = pg_backend_pid()
        WHERE mode IN ('ShareLock', 'ShareRowExclusiveLock', 'ExclusiveLock', 'AccessExclusiveLock')
    ), touched AS (
        SELECT name, seq_scan + coalesce(idx_scan, 0) > 0 AS is_read, n_tup_upd + n_tup_del > 0 AS is_changed
        FROM known JOIN pg_stat_xact_user_tables ON relid = known.oid
    )
    SELECT format('%s is locked against writes while rows of %s are read', locked.name, touched.name)
    FROM locked, touched WHERE is_read
    UNION
    SELECT format('rows of %s are changed in one go', name) FROM touched WHERE is_changed
""")
