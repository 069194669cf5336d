"""The audit rules about reversals, in the form of `app.audit.rules`."""

from app.values.ids import POSITIONS

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
}
