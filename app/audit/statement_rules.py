"""The audit rule about the days that are counted for statements, in the form of `app.audit.rules`."""

from app.statement.read import DAY_OF_MOMENT, MOVES, SUMS, begin_of

_MODES = """(SELECT id AS organization_id, false AS sandbox, counted_until FROM organizations
             UNION ALL SELECT id, true, sandbox_counted_until FROM organizations) mode"""


def _told(row: str) -> str:
    """Word in SQL the sums of a day as a person reads them."""
    figures = ", ".join(f"'{name} ' || coalesce({row}.{name}, 0)" for name in SUMS)
    return f"concat_ws(', ', {figures})"


STATEMENT_RULES = {
    # With the rule that the balance is the sum of all moves, every opening and closing balance of a statement follows.
    "what is counted of a day is what the books have of it": f"""
        SELECT format('organization %s, %s, %s', coalesce(c.organization_id, b.organization_id),
                      CASE WHEN coalesce(c.sandbox, b.sandbox) THEN 'sandbox' ELSE 'live' END,
                      coalesce(c.day, b.day)) AS subject,
               format('counted %s; in the books %s', {_told("c")}, {_told("b")}) AS seen
        FROM (SELECT s.* FROM daily_sums s
              JOIN {_MODES} ON (mode.organization_id, mode.sandbox) = (s.organization_id, s.sandbox)
              WHERE {begin_of("s.day")} < mode.counted_until) c
        FULL JOIN (SELECT moves.organization_id, moves.sandbox, {DAY_OF_MOMENT} AS day,
                          {", ".join(f"sum({name}) AS {name}" for name in SUMS)}
                   FROM ({MOVES}) moves
                   JOIN {_MODES} ON (mode.organization_id, mode.sandbox) = (moves.organization_id, moves.sandbox)
                   WHERE moves.moment < mode.counted_until GROUP BY 1, 2, 3) b
               ON (b.organization_id, b.sandbox, b.day) = (c.organization_id, c.sandbox, c.day)
        WHERE ({", ".join(f"c.{name}" for name in SUMS)})
              IS DISTINCT FROM ({", ".join(f"b.{name}" for name in SUMS)})
        ORDER BY coalesce(c.organization_id, b.organization_id), coalesce(c.sandbox, b.sandbox),
                 coalesce(c.day, b.day)""",
}
