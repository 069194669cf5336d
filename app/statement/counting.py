"""Counting: add what has moved a balance to the sums of its days, so that a statement reads as many rows as days.

A step counts under the lock of the organization's row, up to a moment that is past. Whoever moves a balance holds the
same lock from before its stamp to its commit, so all that was stamped earlier is seen. What is stamped earlier
afterwards, because a clock went back, has that day counted again (`still_counted_until` of the tables).
"""

from typing import NamedTuple

from sqlalchemy import Connection, text

from app.postgres.locks import lock_organization
from app.scope import Scope
from app.statement.read import DAY_OF_MOMENT, MOVES, SUMS, begin_of

# How many batches, reversals or refills a step counts, because it holds the organization's row. Of a day that is not
# over, only full steps are counted: what is left is few, and a statement sums it by itself.
STEP = 2_000
# What is younger is not counted yet: a clock that is set right by seconds has no day counted again.
YOUNG_S = 60


class Due(NamedTuple):
    """An organization and mode of which a step can be counted."""

    organization_id: int
    sandbox: bool


def due(connection: Connection, *, at_most: int) -> list[Due]:
    """Return of which organizations and modes there is something to count."""
    rows = connection.execute(_DUE, _limits() | {"at_most": at_most})
    return [Due(row.organization_id, row.sandbox) for row in rows]


def count_step(connection: Connection, scope: Scope) -> bool:
    """Count the next step of an organization in a mode; False if there is none."""
    lock_organization(connection, scope.organization_id)
    of_mode = scope._asdict()
    until = connection.execute(_NEXT, of_mode | _limits()).scalar_one_or_none()
    if until is None:
        return False
    for statement in (_DELETE_VOID, _COUNT, _NOTE):
        connection.execute(statement, of_mode | {"until": until})
    return True


def _limits() -> dict[str, int]:
    return {"before_last": STEP - 1, "young_s": YOUNG_S}


def _nth(offset: str) -> str:
    """Word in SQL the moment of the next move after so many others of its kind."""
    kinds = (("batches", "issued_at"), ("refills", "created_at"), ("reversals", "done_at"))
    each = (
        f"(SELECT {moment} FROM {table} WHERE organization_id = o.id AND sandbox = m.sandbox"
        f" AND {moment} >= m.counted_until AND {moment} < m.young ORDER BY {moment} OFFSET {offset} LIMIT 1)"
        for table, moment in kinds
    )
    return f"least({', '.join(each)})"


# Up to where the next step goes: past a full step, else to the end of the last day that is over. The clock is read
# once, in a subquery: a value that may change from row to row cannot be looked up in an index.
_STEPS = f"""
    SELECT o.id AS organization_id, m.sandbox, coalesce(n.full_step + interval '1 microsecond', n.midnight) AS until
    FROM organizations o
    CROSS JOIN LATERAL (
        SELECT sandbox, counted_until, (SELECT clock_timestamp()) + ahead - make_interval(secs => :young_s) AS young
        FROM (VALUES (false, o.counted_until, interval '0'), (true, o.sandbox_counted_until, o.sandbox_ahead))
             AS mode (sandbox, counted_until, ahead)) m
    CROSS JOIN LATERAL (SELECT {_nth("0")} AS first, {_nth(":before_last")} AS full_step,
                               date_trunc('day', m.young, 'UTC') AS midnight OFFSET 0) n
    WHERE (n.full_step IS NOT NULL OR n.first < n.midnight)"""
_DUE = text(f"{_STEPS} LIMIT :at_most")
_NEXT = text(f"SELECT until FROM ({_STEPS} AND o.id = :organization_id AND m.sandbox = :sandbox) step")

_COUNTED_UNTIL = """(SELECT CASE WHEN :sandbox THEN sandbox_counted_until ELSE counted_until END
                     FROM organizations WHERE id = :organization_id)"""
_OF_MODE = "organization_id = :organization_id AND sandbox = :sandbox"
_DELETE_VOID = text(f"""
    DELETE FROM daily_sums
    WHERE {_OF_MODE} AND day >= CAST({_COUNTED_UNTIL} AT TIME ZONE 'UTC' AS date)
      AND {begin_of("day")} >= {_COUNTED_UNTIL}
""")
_COUNT = text(f"""
    INSERT INTO daily_sums (organization_id, sandbox, day, {", ".join(SUMS)})
    SELECT :organization_id, :sandbox, {DAY_OF_MOMENT} AS day, {", ".join(f"sum({name})" for name in SUMS)}
    FROM ({MOVES}) moves
    WHERE {_OF_MODE} AND moment >= {_COUNTED_UNTIL} AND moment < :until
    GROUP BY day
    ON CONFLICT (organization_id, sandbox, day) DO UPDATE
    SET {", ".join(f"{name} = daily_sums.{name} + excluded.{name}" for name in SUMS)}
""")
_NOTE = text("""
    UPDATE organizations
    SET counted_until = CASE WHEN :sandbox THEN counted_until ELSE :until END,
        sandbox_counted_until = CASE WHEN :sandbox THEN :until ELSE sandbox_counted_until END
    WHERE id = :organization_id
""")
