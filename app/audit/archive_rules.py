"""The audit rules about what went into the archive, in the form of `app.audit.rules`."""

from app.batches.archived import RANGES, SUMS, is_archived
from app.values.ids import POSITIONS

_NAMED = "format('batches %s to %s', r.first_batch_id, r.end_batch_id - 1) AS subject"
# Those whose batches have no recipients here any more.
_EMPTIED = """(SELECT coalesce(range_agg(int8range(first_batch_id, end_batch_id)), '{}')
               FROM archived_ranges WHERE emptied_at IS NOT NULL)"""
# The first ids of all ranges, in order: which range an id of the archive is in is looked up, and not joined.
_FIRSTS = """(SELECT array_agg(first_batch_id ORDER BY first_batch_id) FROM archived_ranges
              WHERE archived_at IS NOT NULL)"""
_OF_ENTRY = f"e.transaction_id / {POSITIONS}"

ARCHIVE_RULES = {
    "the closing sums of archived batches are those of their heads and reversals": f"""
        SELECT {_NAMED},
               format('organization %s, %s: %s transactions, %s debited, %s taken back; of the batches %s, %s, %s',
                      coalesce(s.organization_id, b.organization_id),
                      CASE WHEN coalesce(s.sandbox, b.sandbox) THEN 'sandbox' ELSE 'live' END,
                      coalesce(s.transactions, 0), coalesce(s.debited, 0), coalesce(s.taken_back, 0),
                      coalesce(b.transactions, 0), coalesce(b.debited, 0), coalesce(b.taken_back, 0)) AS seen
        FROM (SELECT first_batch_id, organization_id, sandbox, sum(transactions) AS transactions,
                     sum(debited) AS debited, sum(taken_back) AS taken_back
              FROM {SUMS} GROUP BY 1, 2, 3) s
        FULL JOIN (SELECT a.first_batch_id, b.organization_id, b.sandbox, sum(b.recipient_count) AS transactions,
                          sum(b.debited_amount) AS debited, coalesce(sum(e.points), 0) AS taken_back
                   FROM archived_ranges a
                   JOIN batches b ON b.id >= a.first_batch_id AND b.id < a.end_batch_id AND b.status = 'issued'
                   LEFT JOIN (SELECT batch_id, sum(reversed) AS points FROM reversal_entries GROUP BY 1) e
                          ON e.batch_id = b.id
                   WHERE a.archived_at IS NOT NULL GROUP BY 1, 2, 3) b
               ON (b.first_batch_id, b.organization_id, b.sandbox) = (s.first_batch_id, s.organization_id, s.sandbox)
        JOIN archived_ranges r ON r.first_batch_id = coalesce(s.first_batch_id, b.first_batch_id)
        WHERE (s.transactions, s.debited, s.taken_back) IS DISTINCT FROM (b.transactions, b.debited, b.taken_back)
        ORDER BY r.first_batch_id""",
    "an archived range has as many transactions as its closing sums, and its issued batches alone are archived": f"""
        SELECT {_NAMED}, format('%s transactions, %s in the sums', r.transactions, coalesce(s.transactions, 0)) AS seen
        FROM archived_ranges r
        LEFT JOIN (SELECT first_batch_id, sum(transactions) AS transactions FROM {SUMS} GROUP BY 1) s
               ON s.first_batch_id = r.first_batch_id
        WHERE r.archived_at IS NOT NULL AND r.transactions <> coalesce(s.transactions, 0)
        UNION ALL
        SELECT format('batch %s', b.id), format('status %s, archived at %s', b.status,
                                                coalesce(b.archived_at::text, 'no time'))
        FROM batches b
        WHERE CASE WHEN b.archived_at IS NULL THEN b.status = 'issued' AND b.id <@ {_EMPTIED}
                   ELSE NOT b.id <@ {RANGES} END""",
    "the closing sums of a user are its entries of archived batches": f"""
        SELECT format('user %s', coalesce(s.user_id, e.user_id)) AS subject,
               format('batches from %s of organization %s: %s credits of %s points, and %s of %s in the entries',
                      coalesce(s.first_batch_id, e.first_batch_id), coalesce(s.organization_id, e.organization_id),
                      coalesce(s.credits, 0), coalesce(s.credited, 0), coalesce(e.credits, 0),
                      coalesce(e.points, 0)) AS seen
        FROM (SELECT first_batch_id, organization_id, user_id, credits, credited FROM {SUMS}
              WHERE NOT sandbox AND credits > 0) s
        FULL JOIN (SELECT {_FIRSTS}[width_bucket({_OF_ENTRY}, {_FIRSTS})] AS first_batch_id, e.organization_id,
                          e.user_id, count(*) FILTER (WHERE e.reversal_id IS NULL) AS credits,
                          sum(coalesce(e.amount, b.amount, i.points)) AS points
                   FROM user_entries e
                   LEFT JOIN batches b ON b.id = {_OF_ENTRY}
                   LEFT JOIN (SELECT b.id * {POSITIONS} + r.ordinality - 1 AS transaction_id,
                                     r.total - coalesce(r.total_before, 0) AS points
                              FROM batches b
                              CROSS JOIN LATERAL unnest(b.running_totals, 0::bigint || b.running_totals)
                                                     WITH ORDINALITY AS r (total, total_before, ordinality)
                              WHERE {is_archived("b.id")} AND b.running_totals IS NOT NULL) i
                          ON i.transaction_id = e.transaction_id
                   WHERE {is_archived(_OF_ENTRY)} GROUP BY 1, 2, 3) e
               ON (e.first_batch_id, e.organization_id, e.user_id) = (s.first_batch_id, s.organization_id, s.user_id)
        WHERE (s.credits, s.credited) IS DISTINCT FROM (e.credits, e.points)
        ORDER BY 1""",
}
