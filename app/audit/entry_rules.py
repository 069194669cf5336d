"""The audit rules about the entries of users, in the form of `app.audit.rules`."""

from app.values.ids import POSITIONS

ENTRY_RULES = {
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
