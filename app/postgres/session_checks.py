"""Whether a session has what the service cannot set itself behind a pooler: what the code relies on, and its limits."""

from collections.abc import Mapping
from typing import NamedTuple

import psycopg
from sqlalchemy import Connection, text


class WrongSession(psycopg.OperationalError):
    """A session lacks what the code relies on. The message names it, and the statement that mends it."""


class Missing(NamedTuple):
    """A setting that a session lacks, its value there, and the statement that mends it."""

    name: str
    value: str
    mend: str


def require_relied_on(connection: psycopg.Connection[tuple[str, ...]]) -> None:
    """Check a session that a pooler has given.

    It looks at those settings of `session_settings` without which the code would read or write something wrong, or
    nothing; no statement depends on the others.

    Raises:
        WrongSession: one of them is wrong.
    """
    wrong = connection.execute(_WRONG).fetchone()
    if wrong is not None:
        name, value, mend = wrong
        raise WrongSession(
            f"A session behind the pooler has {name} = {value!r}, with which the service cannot work. Let the pooler's"
            f" connect query set it, or give PostgreSQL the statement `{mend}` and let the pooler connect anew"
        )


def missing(connection: Connection, settings: Mapping[str, str]) -> list[Missing]:
    """Return the limits that a session lacks of those in `settings`, and the plans that it may make and should not."""
    rows = connection.execute(_MISSING, {"names": list(settings)})
    return [Missing(row.name, row.setting, f"{row.alter} {row.name} = {settings[row.name]}") for row in rows]


def why_read_only(connection: Connection) -> str | None:
    """Return why a session cannot write; None if it can."""
    is_standby, only_reads, database = connection.execute(_READ_ONLY).one()
    if is_standby:
        return "it is a standby, which only reads"
    if only_reads:
        return f"a setting lets it only read: ALTER DATABASE {database} RESET default_transaction_read_only"
    return None


_ALTER = "format('ALTER ROLE %I IN DATABASE %I SET', current_user, current_database())"

# Without tables, `/readyz` and the commands say so.
_WRONG = f"""
    SELECT name, value, {_ALTER} || ' ' || name || ' = ' || mended
    FROM (SELECT current_setting('datestyle') AS style, current_setting('array_nulls') AS nulls,
                 current_setting('default_transaction_isolation') AS isolation,
                 current_setting('search_path') AS path) session
    CROSS JOIN LATERAL (VALUES
        ('datestyle', style, style LIKE 'ISO%', '''ISO, MDY'''),
        ('array_nulls', nulls, nulls = 'on', 'on'),
        ('default_transaction_isolation', isolation, isolation = 'read committed', '''read committed'''),
        ('search_path', path, to_regclass('batches') IS NOT NULL OR to_regclass('public.batches') IS NULL, 'public')
    ) looked_at (name, value, is_right, mended)
    WHERE NOT is_right LIMIT 1
""".encode()

_READ_ONLY = text("""
    SELECT pg_is_in_recovery(), current_setting('transaction_read_only') = 'on', quote_ident(current_database())
""")

_MISSING = text(f"""
    SELECT name, setting, {_ALTER} AS alter FROM pg_settings
    WHERE name = ANY(:names)
      AND (vartype = 'integer' AND setting = '0' OR name IN ('enable_seqscan', 'jit') AND setting = 'on')
    ORDER BY name
""")
