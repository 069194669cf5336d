"""The audit rules about points held until a time, in the form of `app.audit.rules`."""

from app.values.ids import POSITIONS

_TRANSACTION = f"format('transaction %s', t.batch_id::numeric * {POSITIONS} + t.position) AS subject"
# Until when the points of a transaction `t` of a batch `b` are held.
_END = "coalesce(t.held_until, b.held_until)"

RETURN_RULES = {
    "no claim is later than held_until": f"""
        SELECT {_TRANSACTION}, format('claimed at %s, held until %s', t.claimed_at, {_END}) AS seen
        FROM transactions t JOIN batches b ON b.id = t.batch_id
        WHERE t.claimed_at >= {_END}
        ORDER BY t.batch_id, t.position""",
    "points are held for the days asked for, or longer if extended": """
        SELECT DISTINCT ON (batch_id) format('batch %s', batch_id) AS subject,
               format('held until %s, at first until %s, issued at %s', held_until, at_first, issued_at) AS seen
        FROM (SELECT t.batch_id, t.position, t.held_until, b.held_until AS at_first, b.issued_at
              FROM transactions t JOIN batches b ON b.id = t.batch_id
              WHERE t.held_until IS NOT NULL AND coalesce(t.held_until <= b.held_until, true)
              UNION ALL
              SELECT id, -1, held_until, held_until, issued_at FROM batches
              WHERE held_until <> issued_at + make_interval(hours => 24 * hold_days)) differing
        ORDER BY batch_id, position""",
    "returned points were held until held_until, and went back once": f"""
        SELECT format('transaction %s', coalesce(t.batch_id, e.batch_id)::numeric * {POSITIONS}
                                        + coalesce(t.position, e.position)) AS subject,
               format('returned at %s, held until %s, entries of returns: %s of %s points', t.returned_at, t.held_until,
                      coalesce(e.count, 0), coalesce(e.points, 0)) AS seen
        FROM (SELECT t.batch_id, t.position, t.returned_at, t.credited, t.points_left, {_END} AS held_until
              FROM transactions t JOIN batches b ON b.id = t.batch_id WHERE t.returned_at IS NOT NULL) t
        FULL JOIN (SELECT e.batch_id, e.transaction_position AS position, count(*), sum(e.reversed) AS points,
                          max(r.done_at) AS done_at, bool_and(e.batch_id = r.batch_id AND e.reversed > 0) AS is_right
                   FROM reversals r JOIN reversal_entries e ON e.reversal_id = r.id
                   WHERE r.is_return GROUP BY 1, 2) e
               ON (e.batch_id, e.position) = (t.batch_id, t.position)
        WHERE (e.count = 1 AND e.is_right AND e.done_at = t.returned_at AND NOT t.credited AND t.points_left = 0
               AND t.held_until <= t.returned_at) IS NOT TRUE
        ORDER BY coalesce(t.batch_id, e.batch_id), coalesce(t.position, e.position)""",
    # A batch whose points the balance could not take is looked at again within two hours, by its sandbox's clock.
    "a return looks at each batch when its held points end": f"""
        SELECT {_TRANSACTION},
               format('held until %s, looked at: %s', {_END}, coalesce(b.return_at::text, 'never')) AS seen
        FROM transactions t JOIN batches b ON b.id = t.batch_id
        WHERE t.debited AND NOT t.credited AND t.points_left IS DISTINCT FROM 0 AND {_END} IS NOT NULL
          AND coalesce(b.return_at > greatest({_END}, now() + CASE WHEN t.sandbox THEN interval '732 days'
                                                                   ELSE interval '2 hours' END), true)
        ORDER BY t.batch_id, t.position""",
}
