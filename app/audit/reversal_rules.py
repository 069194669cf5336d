"""The audit rules about what users have of points: credits, reversals and returns, in the form of `app.audit.rules`."""

from app.values.ids import POSITIONS

_TRANSACTION = f"format('transaction %s', t.batch_id::numeric * {POSITIONS} + t.position) AS subject"
# Until when the points of a transaction `t` of a batch `b` are held.
_END = "coalesce(t.held_until, b.held_until)"

REVERSAL_RULES = {
    # Nothing can be taken from a transaction that was never debited.
    "reversal entries are what was taken back of a transaction, up to its amount": f"""
        SELECT format('transaction %s', coalesce(t.batch_id, e.batch_id)::numeric * {POSITIONS}
                                        + coalesce(t.position, e.position)) AS subject,
               format('%s of %s points left, entries of %s', t.points_left, t.points, coalesce(e.points, 0)) AS seen
        FROM (SELECT t.batch_id, t.position, t.points_left,
                     CASE WHEN t.debited THEN coalesce(t.amount, b.amount) ELSE 0 END AS points
              FROM transactions t JOIN batches b ON b.id = t.batch_id
              WHERE t.points_left IS NOT NULL) t
        FULL JOIN (SELECT batch_id, transaction_position AS position, sum(reversed) AS points
                   FROM reversal_entries GROUP BY 1, 2 HAVING sum(reversed) <> 0) e
               ON (e.batch_id, e.position) = (t.batch_id, t.position)
        WHERE t.points::numeric - t.points_left IS DISTINCT FROM e.points
           OR t.points_left NOT BETWEEN 0 AND t.points - 1
        ORDER BY coalesce(t.batch_id, e.batch_id), coalesce(t.position, e.position)""",
    "a reversal has an entry for each transaction asked for, in order": f"""
        SELECT format('reversal %s', r.id) AS subject,
               format('status %s, %s entries where %s were asked for', r.status, coalesce(e.count, 0),
                      coalesce(cardinality(a.ids), 0)) AS seen
        FROM reversals r
        LEFT JOIN (SELECT batch_id, array_agg(batch_id * {POSITIONS} + position ORDER BY position) AS ids
                   FROM transactions WHERE batch_id IN (SELECT batch_id FROM reversals) GROUP BY 1) b
               ON b.batch_id = r.batch_id
        LEFT JOIN (SELECT reversal_id, count(*) AS count, min(position) AS first, max(position) AS last,
                          array_agg(batch_id * {POSITIONS} + transaction_position ORDER BY position) AS ids
                   FROM reversal_entries GROUP BY 1) e
               ON e.reversal_id = r.id
        -- A return has entries only for transactions that were held too long.
        CROSS JOIN LATERAL (SELECT CASE WHEN r.is_return THEN e.ids
                                        WHEN r.status = 'done' THEN coalesce(r.transaction_ids, b.ids) END AS ids) a
        WHERE e.ids IS DISTINCT FROM a.ids OR e.first <> 0 OR e.last <> e.count - 1
        ORDER BY r.id""",
    "a reversal's amount is the sum of its entries, all or none if atomic": """
        SELECT format('reversal %s', r.id) AS subject,
               format('%s points of entries of %s, status %s', coalesce(r.reversed_amount, 0), coalesce(e.points, 0),
                      r.status) AS seen
        FROM reversals r
        LEFT JOIN (SELECT reversal_id, sum(reversed) AS points, bool_or(code IS NOT NULL) AS is_short,
                          bool_or(code IS NULL AND reversed = 0) AS takes_nothing,
                          max(reversed) FILTER (WHERE code IS NULL) AS most,
                          min(reversed) FILTER (WHERE code IS NULL) AS least
                   FROM reversal_entries GROUP BY 1) e
               ON e.reversal_id = r.id
        WHERE coalesce(r.reversed_amount, 0) <> coalesce(e.points, 0)
           OR e.takes_nothing <> (r.atomic AND e.is_short AND e.most IS NOT NULL)
           OR (r.amount IS NOT NULL AND NOT e.takes_nothing AND (e.most <> r.amount OR e.least <> r.amount))
           OR (e.takes_nothing AND e.most <> 0)
        ORDER BY r.id""",
    "a reversal and its transactions have one organization and mode": """
        SELECT DISTINCT ON (r.id) format('reversal %s', r.id) AS subject,
               format('organization %s, %s, and batch %s of organization %s, taken from as of %s', r.organization_id,
                      CASE WHEN r.sandbox THEN 'sandbox' ELSE 'live' END, e.batch_id,
                      coalesce(b.organization_id::text, 'none'), e.organization_id) AS seen
        FROM reversals r LEFT JOIN organizations o ON o.id = r.organization_id
        LEFT JOIN (SELECT DISTINCT reversal_id, batch_id, organization_id FROM reversal_entries
                   UNION SELECT id, batch_id, organization_id FROM reversals WHERE batch_id IS NOT NULL) e
               ON e.reversal_id = r.id
        LEFT JOIN batches b ON b.id = e.batch_id
        WHERE o.id IS NULL
           OR (e.batch_id IS NOT NULL
               AND ((b.organization_id, b.sandbox) IS DISTINCT FROM (r.organization_id, r.sandbox)
                    OR e.organization_id <> r.organization_id))
        ORDER BY r.id, e.batch_id""",
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
    # What is not folded yet has no entry of its credit.
    "a user's entries are what was credited, and what was taken back of it": f"""
        SELECT format('transaction %s', coalesce(t.id, e.id)) AS subject,
               format('user %s of organization %s, %s credits to be told, %s points;'
                      ' entries of user %s of organization %s, %s credits, %s points',
                      coalesce(t.user_id::text, 'none'), coalesce(t.organization_id::text, 'none'),
                      coalesce(t.credits, 0), coalesce(t.points, 0), coalesce(e.first_user::text, 'none'),
                      coalesce(e.first_organization::text, 'none'), coalesce(e.credits, 0),
                      coalesce(e.points + e.whole * t.whole, e.points, 0)) AS seen
        FROM (SELECT t.batch_id::numeric * {POSITIONS} + t.position AS id, t.user_id, t.organization_id,
                     coalesce(t.amount, b.amount)::numeric AS whole,
                     CASE WHEN pending THEN 0 ELSE 1 END AS credits,
                     coalesce(t.points_left, t.amount, b.amount)::numeric
                     - CASE WHEN pending THEN coalesce(t.amount, b.amount) ELSE 0 END AS points
              FROM transactions t JOIN batches b ON b.id = t.batch_id
              LEFT JOIN unfolded_batches f ON f.batch_id = t.batch_id AND f.organization_id = t.organization_id
              CROSS JOIN LATERAL (SELECT f.batch_id IS NOT NULL AND t.claimed_at IS NULL AS pending) is_folded
              WHERE t.credited AND NOT t.sandbox) t
        FULL JOIN (SELECT transaction_id::numeric AS id, min(user_id) AS first_user, max(user_id) AS last_user,
                          min(organization_id) AS first_organization, max(organization_id) AS last_organization,
                          count(*) FILTER (WHERE reversal_id IS NULL) AS credits,
                          count(*) FILTER (WHERE amount IS NULL) AS whole, coalesce(sum(amount), 0) AS points
                   FROM user_entries GROUP BY 1) e ON e.id = t.id
        WHERE coalesce(t.credits, 0) <> coalesce(e.credits, 0)
           OR coalesce(t.points, 0) <> coalesce(e.points + e.whole * t.whole, e.points, 0)
           OR least(e.first_user, t.user_id) <> greatest(e.last_user, t.user_id)
           OR least(e.first_organization, t.organization_id) <> greatest(e.last_organization, t.organization_id)
        ORDER BY 1""",
    "an entry has the time of its issue, claim or reversal, and the points of the reversal": f"""
        SELECT format('transaction %s', e.id) AS subject,
               format('an entry of %s at %s, where %s at %s were', coalesce(e.amount::text, 'all'), e.created_at,
                      coalesce(-r.reversed, e.amount)::text, coalesce(v.done_at, t.credited_at)) AS seen
        FROM (SELECT transaction_id::numeric AS id, reversal_id, amount, created_at FROM user_entries) e
        LEFT JOIN (SELECT t.batch_id::numeric * {POSITIONS} + t.position AS id,
                          coalesce(t.claimed_at, b.issued_at) AS credited_at
                   FROM transactions t JOIN batches b ON b.id = t.batch_id
                   WHERE t.credited AND NOT t.sandbox) t ON t.id = e.id AND e.reversal_id IS NULL
        LEFT JOIN reversals v ON v.id = e.reversal_id
        LEFT JOIN (SELECT reversal_id, batch_id::numeric * {POSITIONS} + transaction_position AS id, reversed
                   FROM reversal_entries WHERE reversed > 0) r ON (r.reversal_id, r.id) = (e.reversal_id, e.id)
        WHERE CASE WHEN e.reversal_id IS NULL THEN e.created_at IS DISTINCT FROM t.credited_at
                   ELSE e.created_at IS DISTINCT FROM v.done_at OR e.amount IS DISTINCT FROM -r.reversed END
        ORDER BY e.id, e.created_at""",
}
