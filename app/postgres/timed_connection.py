"""A connection to PostgreSQL with a time limit for every answer, and a check whether the server has closed it."""

import select
import time
from collections.abc import Mapping
from typing import Any, ClassVar, NamedTuple

import psycopg
from psycopg.abc import RV, PQGen
from sqlalchemy import Connection, text

# An idle connection is readable only when the server has closed it or is closing it.
_READABLE = select.POLLIN | select.POLLPRI


class TimedConnection(psycopg.Connection[tuple[Any, ...]]):
    """A connection that gives up on a server that does not answer.

    The server's own time limits work only while the server runs. A frozen server keeps its TCP connections but never
    answers, and so does a proxy that has lost its server.
    """

    # Time limit for an answer; None: no limit.
    answer_timeout_s: float | None = None
    # Whether the connection has left the pool before.
    was_used = False

    # When a connection of this process to the server last timed out (`time.monotonic`).
    last_timeout_at: ClassVar[float] = 0.0

    def __init__(self, *arguments: Any, **named: Any) -> None:
        super().__init__(*arguments, **named)
        self.made_at = time.monotonic()

    def __del__(self, *_: Any) -> None:
        """Say nothing, unlike psycopg: a pool that is dropped cannot close what a thread still has. libpq closes it."""

    def wait(self, gen: PQGen[RV], interval: float = 0.1, timeout: float | None = None) -> RV:
        """Wait as psycopg does, but for at most `answer_timeout_s`.

        Raises:
            psycopg.OperationalError: no answer in time. The connection is closed, because the answer may still come.
        """
        if timeout is not None or self.answer_timeout_s is None:
            return super().wait(gen, interval, timeout)
        began = time.monotonic()
        try:
            return super().wait(gen, interval, self.answer_timeout_s)
        except psycopg.OperationalError:
            if time.monotonic() < began + self.answer_timeout_s:  # The server answered with an error.
                raise
        type(self).last_timeout_at = time.monotonic()
        self.pgconn.finish()
        raise psycopg.OperationalError(f"PostgreSQL has not answered within {self.answer_timeout_s:g} s")


class StandbyConnection(TimedConnection):
    """A connection to the standby of long reads: when it is frozen, the primary is not."""

    last_timeout_at: ClassVar[float] = 0.0


def is_dead(connection: TimedConnection) -> bool:
    """Tell whether the server has closed an idle connection. It only looks at the socket and sends nothing.

    A connection older than the last timeout counts as dead too: it leads to the same server, and each connection of
    the pool would make another caller wait for the timeout.
    """
    if connection.closed or connection.made_at < connection.last_timeout_at:
        return True
    poll = select.poll()
    poll.register(connection.fileno(), _READABLE)
    return bool(poll.poll(0))


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
        WrongSession: any of them is wrong.
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
