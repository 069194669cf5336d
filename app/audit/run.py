"""The audit: proves from one snapshot that the books balance, and names each breach (contract, part 4)."""

import time
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from sqlalchemy import Connection, Row, text
from sqlalchemy.exc import DBAPIError

from app.audit.rules import RULES
from app.postgres.connections import disable_timeouts, wait_at_most
from app.postgres.database import is_away

BREACHES_SHOWN_MAX = 100

# A registration that crosses an issue leaves points held until a search finds it. After this long it is a breach.
_CROSSING_GRACE_S = 120

# The rule that is broken when the tables cannot be read.
_COUNTED = "every row can be counted"

# A rule is planned for all its rows. For the first hundred PostgreSQL would compare each row with each other in turn,
# because it expects to find so many soon; in books that balance there is none.
#
# `modes` has a row for each organization and mode, and its `subject`, as a breach names it.
_FIRST = """
    WITH modes AS (
        SELECT *, format('organization %s, %s', organization_id, CASE WHEN sandbox THEN 'sandbox' ELSE 'live' END)
                      AS subject
        FROM (SELECT id AS organization_id, false AS sandbox, balance, last_refill, held_points, held_count,
                     counted_until FROM organizations
              UNION ALL
              SELECT id, true, sandbox_balance, sandbox_last_refill, sandbox_held_points, sandbox_held_count,
                     sandbox_counted_until FROM organizations) each
    ), breaches AS MATERIALIZED (
        {rule}
    )
    SELECT * FROM breaches LIMIT :breaches_shown_max
"""

_PARAMETERS = {"breaches_shown_max": BREACHES_SHOWN_MAX, "crossing_grace_s": _CROSSING_GRACE_S}


@dataclass(frozen=True, kw_only=True, slots=True)
class Breach:
    """A breach of a rule: the rule's name, the row that breaks it, and the figures there."""

    rule: str
    subject: str
    seen: str


@dataclass(frozen=True, kw_only=True, slots=True)
class Audit:
    """The result of an audit: what it read, and at most `BREACHES_SHOWN_MAX` breaches per rule."""

    organizations: int
    users: int
    batches: int
    transactions: int
    breaches: list[Breach]


def audit(connection: Connection, *, time_limit_s: float | None = None) -> Audit:
    """Check every rule of the books. In `app.postgres.database.snapshot()`, all rules see the same state.

    It takes no lock that a send, a refill or a registration waits for.

    A rule that ends with an error counts as broken, since nobody knows what it would have named.

    Raises:
        DBAPIError: it took longer than `time_limit_s`, or PostgreSQL went away.
    """
    deadline = None if time_limit_s is None else time.monotonic() + time_limit_s
    _limit_statement(connection, deadline)
    connection.execute(text("SET LOCAL enable_seqscan = on"))  # It reads whole tables.
    counts: dict[str, int] = {"organizations": 0, "users": 0, "batches": 0, "transactions": 0}
    breaches = []
    for rule, sql in ({_COUNTED: _COUNTS} | RULES).items():
        try:
            rows = _ask(connection, sql, deadline)
        except DBAPIError as error:
            if is_away(error):
                raise
            breaches.append(Breach(rule=rule, subject="an error", seen=type(error.orig).__name__))
            continue
        if rule == _COUNTED:
            counts = rows[0]._asdict()
        else:
            breaches += [Breach(rule=rule, subject=row.subject, seen=row.seen) for row in rows]
    return Audit(**counts, breaches=breaches)


def _ask(connection: Connection, sql: str, deadline: float | None) -> Sequence[Row[Any]]:
    """Run a statement under a savepoint, so that its error does not end the snapshot."""
    _limit_statement(connection, deadline)
    with connection.begin_nested():
        return connection.execute(text(_FIRST.format(rule=sql)), _PARAMETERS).all()


def _limit_statement(connection: Connection, deadline: float | None) -> None:
    """Give the next statement the time that is left. A request's limit is too short: an audit reads every row."""
    if deadline is None:
        disable_timeouts(connection)
        connection.execute(text("SET LOCAL statement_timeout = 0"))
    else:
        wait_at_most(connection, max(0.001, deadline - time.monotonic()))


_COUNTS = """
    SELECT (SELECT count(*) FROM organizations) AS organizations, (SELECT count(*) FROM users) AS users,
           (SELECT count(*) FROM batches) AS batches, (SELECT count(*) FROM transactions) AS transactions
"""
