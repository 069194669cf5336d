"""The audit rules, each as the statement that finds its breaches (contract, part 4)."""

from app.audit.answer_rules import ANSWER_RULES
from app.audit.event_rules import EVENT_RULES
from app.audit.reversal_rules import REVERSAL_RULES
from app.batches.verify import INSUFFICIENT_RECIPIENT
from app.values.addresses import IS_ERASED
from app.values.ids import POSITIONS

# Each statement returns one row per breach: `subject` names the row, `seen` says what does not fit. Products are
# computed in numeric: a wrong figure may be of any size, and a rule that overflows names no row. LIMIT 1 makes
# PostgreSQL find a transaction by its position, and not read the whole batch for each.
RULES = {
    "refills less debits plus reversals are the balance": """
        SELECT o.subject,
               format('refills %s, debits %s, taken back %s, balance %s', coalesce(r.points, 0), coalesce(d.points, 0),
                      coalesce(e.points, 0), o.balance) AS seen
        FROM modes o
        LEFT JOIN (SELECT organization_id, sandbox, sum(amount) AS points FROM refills GROUP BY 1, 2) r
               ON (r.organization_id, r.sandbox) = (o.organization_id, o.sandbox)
        LEFT JOIN (SELECT b.organization_id, b.sandbox, sum(coalesce(t.amount, b.amount)) AS points
                   FROM transactions t JOIN batches b ON b.id = t.batch_id WHERE t.debited GROUP BY 1, 2) d
               ON (d.organization_id, d.sandbox) = (o.organization_id, o.sandbox)
        LEFT JOIN (SELECT r.organization_id, r.sandbox, sum(e.reversed) AS points
                   FROM reversal_entries e JOIN reversals r ON r.id = e.reversal_id GROUP BY 1, 2) e
               ON (e.organization_id, e.sandbox) = (o.organization_id, o.sandbox)
        WHERE coalesce(r.points, 0) - coalesce(d.points, 0) + coalesce(e.points, 0) <> o.balance OR o.balance < 0
        ORDER BY o.organization_id, o.sandbox""",
    "a last refill is the balance after the newest refill": """
        SELECT o.subject, format('last refill %s, newest refill %s', o.last_refill, r.balance) AS seen
        FROM modes o
        LEFT JOIN (SELECT DISTINCT ON (organization_id, sandbox) organization_id, sandbox, balance
                   FROM refills ORDER BY organization_id, sandbox, id DESC) r
               ON (r.organization_id, r.sandbox) = (o.organization_id, o.sandbox)
        WHERE coalesce(r.balance, 0) <> o.last_refill
        ORDER BY o.organization_id, o.sandbox""",
    "a user's balance is the credited live transactions, less what was taken back": """
        SELECT format('user %s', user_id) AS subject,
               format('of organization %s: credits %s, balance %s of which %s are not folded yet', organization_id,
                      sum(credits), sum(folded) + sum(unfolded), sum(unfolded)) AS seen
        FROM (SELECT t.user_id, t.organization_id, CASE WHEN t.sandbox THEN 0 ELSE points END AS credits, 0 AS folded,
                     CASE WHEN f.batch_id IS NOT NULL AND t.claimed_at IS NULL THEN points ELSE 0 END AS unfolded
              FROM transactions t JOIN batches b ON b.id = t.batch_id
              LEFT JOIN unfolded_batches f ON f.batch_id = t.batch_id AND f.organization_id = t.organization_id
              CROSS JOIN LATERAL (SELECT coalesce(t.points_left, t.amount, b.amount) AS points) of_it
              WHERE t.credited AND (NOT t.sandbox OR f.batch_id IS NOT NULL)
              UNION ALL SELECT user_id, organization_id, 0, points, 0 FROM user_balances) both_sides
        GROUP BY user_id, organization_id HAVING sum(credits) <> sum(folded) + sum(unfolded)
        ORDER BY user_id, organization_id""",
    "what is held in full partitions is listed": f"""
        SELECT format('transaction %s', t.id) AS subject,
               format('held of organization %s, listed of %s', t.organization_id,
                      coalesce(h.organization_id::text, 'none')) AS seen
        FROM (SELECT batch_id::numeric * {POSITIONS} + position AS id, organization_id,
                     held_hash(coalesce(email_key, email), sandbox, organization_id) AS hash
              FROM transactions
              WHERE debited AND NOT credited AND points_left IS DISTINCT FROM 0 AND NOT {IS_ERASED}
                AND batch_id < (SELECT listed_to FROM held_listing)) t
        LEFT JOIN held_transactions h ON h.transaction_id::numeric = t.id AND h.address_hash = t.hash
        WHERE h.organization_id IS DISTINCT FROM t.organization_id
        ORDER BY t.id""",
    "what is kept as held is the sum of the held transactions": """
        SELECT o.subject,
               format('%s points of %s held, and %s points of %s kept', coalesce(h.points, 0), coalesce(h.count, 0),
                      k.points, k.count) AS seen
        FROM modes o
        LEFT JOIN (SELECT organization_id, sum(points) AS points, sum(count) AS count
                   FROM unfolded_claims GROUP BY 1) c ON c.organization_id = o.organization_id AND NOT o.sandbox
        CROSS JOIN LATERAL (SELECT o.held_points - coalesce(c.points, 0) AS points,
                                   o.held_count - coalesce(c.count, 0) AS count) k
        LEFT JOIN (SELECT t.organization_id, t.sandbox, sum(coalesce(t.points_left, t.amount, b.amount)) AS points,
                          count(*) AS count
                   FROM transactions t JOIN batches b ON b.id = t.batch_id
                   WHERE t.debited AND NOT t.credited AND t.points_left IS DISTINCT FROM 0 GROUP BY 1, 2) h
               ON (h.organization_id, h.sandbox) = (o.organization_id, o.sandbox)
        WHERE coalesce(h.points, 0) <> k.points OR coalesce(h.count, 0) <> k.count
        ORDER BY o.organization_id, o.sandbox""",
    "a batch's transactions are its recipients, in order": """
        SELECT format('batch %s', b.id) AS subject,
               format('%s recipients, %s transactions, %s', b.recipient_count, count(t.batch_id), coalesce(
                   (SELECT 'the first that differs at position ' || min(r.ordinality - 1)
                    FROM unnest(b.emails, coalesce(b.email_keys, b.emails))
                         WITH ORDINALITY AS r (email, key, ordinality)
                    LEFT JOIN LATERAL (SELECT * FROM transactions
                                       WHERE batch_id = b.id AND position = r.ordinality - 1 LIMIT 1) x ON true
                    WHERE x.email IS DISTINCT FROM r.email OR coalesce(x.email_key, x.email) IS DISTINCT FROM r.key
                       OR x.sandbox <> b.sandbox OR x.organization_id <> b.organization_id),
                   'some of them beyond the recipients')) AS seen
        FROM batches b LEFT JOIN transactions t ON t.batch_id = b.id
        WHERE b.status = 'issued'
        GROUP BY b.id
        HAVING b.emails IS DISTINCT FROM array_agg(t.email ORDER BY t.position)
            OR coalesce(b.email_keys, b.emails)
               IS DISTINCT FROM array_agg(coalesce(t.email_key, t.email) ORDER BY t.position)
            OR min(t.position) <> 0 OR max(t.position) <> b.recipient_count - 1
            OR count(DISTINCT t.position) <> b.recipient_count
            OR bool_or(t.sandbox <> b.sandbox OR t.organization_id <> b.organization_id)
        ORDER BY b.id""",
    "a transaction has the amount, label and reference of its item": """
        SELECT DISTINCT ON (batch_id) format('batch %s', batch_id) AS subject,
               format('the first that differs at position %s', position) AS seen
        FROM (
            SELECT t.batch_id, t.position FROM transactions t JOIN batches b ON b.id = t.batch_id
            WHERE (t.amount IS NOT NULL AND b.running_totals IS NULL) OR (t.label IS NOT NULL AND b.labels IS NULL)
               OR (t.reference IS NOT NULL AND b.item_references IS NULL)
            UNION ALL
            SELECT b.id, r.ordinality - 1
            FROM batches b
            CROSS JOIN LATERAL unnest(b.running_totals, (0::bigint || b.running_totals)[1 : b.recipient_count],
                                      b.labels, b.item_references)
                                   WITH ORDINALITY AS r (total, total_before, label, reference, ordinality)
            LEFT JOIN LATERAL (SELECT amount, label, reference FROM transactions
                               WHERE batch_id = b.id AND position = r.ordinality - 1 LIMIT 1) t ON true
            WHERE b.status = 'issued'
              AND (b.running_totals IS NOT NULL OR b.labels IS NOT NULL OR b.item_references IS NOT NULL)
              AND (r.total <= r.total_before OR t.amount IS DISTINCT FROM r.total::numeric - r.total_before
                   OR t.label IS DISTINCT FROM r.label OR t.reference IS DISTINCT FROM r.reference)
        ) differing
        ORDER BY batch_id, position""",
    "each balance follows from the one before": f"""
        SELECT DISTINCT ON (b.id) format('batch %s', b.id) AS subject,
               format('at position %s debited %s and balance %s, where %s and %s follow',
                      t.position, t.debited, t.balance, e.debited, e.balance) AS seen
        FROM batches b JOIN transactions t ON t.batch_id = b.id
        -- Joined by a single value: by two, PostgreSQL may compare each transaction with every item of its batch.
        LEFT JOIN (SELECT b.id::numeric * {POSITIONS} + r.ordinality - 1 AS transaction_id, r.points, r.before
                   FROM batches b
                   CROSS JOIN LATERAL (SELECT coalesce(b.payable_totals, b.running_totals) AS totals) its
                   CROSS JOIN LATERAL unnest(its.totals, (0::bigint || its.totals)[1 : b.recipient_count])
                                          WITH ORDINALITY AS r (points, before, ordinality)
                  ) i ON i.transaction_id = t.batch_id::numeric * {POSITIONS} + t.position
        CROSS JOIN LATERAL (
            SELECT b.current_balance + b.debited_amount::numeric
                   - least(coalesce(i.points, b.amount::numeric * (t.position + 1)), b.debited_amount) AS balance,
                   CASE WHEN b.payable_totals IS NULL THEN t.position < b.debited_count
                        ELSE i.points <= b.debited_amount AND i.points > i.before END AS debited
        ) e
        WHERE t.debited <> e.debited OR t.balance <> e.balance
        ORDER BY b.id, t.position""",
    # Recipients are served in request order while the balance covers them (contract, part 2), or is rehearsed to.
    "every recipient that the balance covers is debited": f"""
        SELECT format('batch %s', b.id) AS subject,
               format('%s of %s recipients debited%s, and %s points left where %s would pay more', b.debited_count,
                      b.recipient_count, CASE WHEN b.atomic THEN ' (atomic)' ELSE '' END, b.current_balance, n.points)
                   AS seen
        FROM batches b
        CROSS JOIN LATERAL (SELECT CASE WHEN b.payable_totals IS NULL THEN b.debited_count
                                        ELSE width_bucket(b.debited_amount, b.payable_totals) END AS count) paid
        CROSS JOIN LATERAL (SELECT CASE WHEN b.atomic THEN b.recipient_count ELSE paid.count + 1 END AS count) more
        CROSS JOIN LATERAL (
            SELECT coalesce(b.payable_totals[more.count], b.amount::numeric * more.count, b.running_totals[more.count])
                   - b.debited_amount AS points
        ) n
        WHERE b.status = 'issued' AND paid.count < b.recipient_count AND b.current_balance >= n.points
          AND (NOT b.sandbox OR b.api_key_id IS NULL
               OR b.rehearsed_unpaid IS NOT TRUE
                  AND NOT EXISTS (
                      SELECT FROM unnest((coalesce(b.email_keys, b.emails))[paid.count + 1 : more.count]) email
                      WHERE email = '{INSUFFICIENT_RECIPIENT}' OR {IS_ERASED}))
        ORDER BY b.id""",
    # Every batch, refill and reversal leads from one balance to the next. In any order (no clock is read), each
    # balance that any of them starts from is the result of another, except the first, 0.
    "balances form one chain from zero to the present": """
        SELECT format('organization %s, %s', organization_id, CASE WHEN sandbox THEN 'sandbox' ELSE 'live' END)
                   AS subject,
               format('a balance of %s that nothing has left', points) AS seen
        FROM (
            (SELECT organization_id, sandbox, current_balance + debited_amount::numeric AS points
             FROM batches WHERE status = 'issued'
             UNION ALL SELECT organization_id, sandbox, balance::numeric - amount FROM refills
             UNION ALL SELECT organization_id, sandbox, current_balance::numeric - reversed_amount
             FROM reversals WHERE status = 'done'
             UNION ALL SELECT organization_id, sandbox, balance FROM modes)
            EXCEPT ALL
            (SELECT organization_id, sandbox, current_balance FROM batches WHERE status = 'issued'
             UNION ALL SELECT organization_id, sandbox, balance FROM refills
             UNION ALL SELECT organization_id, sandbox, current_balance FROM reversals WHERE status = 'done'
             UNION ALL SELECT organization_id, sandbox, 0 FROM modes)
        ) unexplained
        ORDER BY organization_id, sandbox""",
    "only an issued batch has transactions": """
        SELECT format('batch %s', t.batch_id) AS subject, format('status %s', coalesce(b.status, 'none')) AS seen
        FROM (SELECT DISTINCT batch_id FROM transactions) t LEFT JOIN batches b ON b.id = t.batch_id
        WHERE b.status IS DISTINCT FROM 'issued'
        ORDER BY t.batch_id""",
    "a batch belongs to an organization": """
        SELECT format('batch %s', b.id) AS subject, format('organization %s', b.organization_id) AS seen
        FROM batches b WHERE NOT EXISTS (SELECT FROM organizations o WHERE o.id = b.organization_id)
        ORDER BY b.id""",
    "only an issued live batch waits to be folded": """
        SELECT format('batch %s', f.batch_id) AS subject,
               format('status %s, organization %s, waits for %s', coalesce(b.status, 'none'),
                      coalesce(b.organization_id::text, 'none'), f.organization_id) AS seen
        FROM unfolded_batches f LEFT JOIN batches b ON b.id = f.batch_id
        WHERE b.status IS DISTINCT FROM 'issued' OR b.sandbox OR b.organization_id <> f.organization_id
        ORDER BY f.batch_id""",
    "flags follow the table of the contract": f"""
        SELECT format('transaction %s', t.batch_id::numeric * {POSITIONS} + t.position) AS subject,
               format('debited %s, credited %s, user %s', t.debited, t.credited,
                      coalesce(t.user_id::text, 'none')) AS seen
        FROM transactions t
        WHERE (t.credited AND NOT t.debited) OR (t.debited AND t.credited <> (t.user_id IS NOT NULL))
           OR (t.claimed_at IS NOT NULL AND NOT t.credited)
        ORDER BY t.batch_id, t.position""",
    "a transaction's user is registered under its address": f"""
        SELECT format('transaction %s', t.batch_id::numeric * {POSITIONS} + t.position) AS subject,
               format('user %s', t.user_id) AS seen
        FROM transactions t LEFT JOIN users u ON u.id = t.user_id
        WHERE t.user_id IS NOT NULL
          AND ((coalesce(t.email_key, t.email) IS DISTINCT FROM u.email_key
                AND NOT EXISTS (SELECT FROM former_addresses f
                                WHERE f.user_id = t.user_id AND f.email_key = coalesce(t.email_key, t.email))
                AND NOT (u.erased_at IS NOT NULL AND t.email IS NOT DISTINCT FROM u.email))
               OR u.sandbox_of IS DISTINCT FROM CASE WHEN t.sandbox THEN t.organization_id END)
        ORDER BY t.batch_id, t.position""",
    # The time of the books is the snapshot's; in a copy that nobody writes to any more, its newest row's. Otherwise
    # a long audit, or that of a restored copy, would report a crossing that was only seconds old.
    "nothing stays held for a registered user": f"""
        SELECT format('transaction %s', t.batch_id::numeric * {POSITIONS} + t.position) AS subject,
               format('user %s', u.id) AS seen
        FROM transactions t JOIN users u ON u.email_key = coalesce(t.email_key, t.email) AND u.sandbox_of IS NULL
        JOIN batches b ON b.id = t.batch_id
        CROSS JOIN LATERAL (SELECT greatest(u.created_at, u.address_changed_at, b.issued_at) AS since) both_there
        WHERE t.debited AND NOT t.credited AND NOT t.sandbox AND t.points_left IS DISTINCT FROM 0
          AND since < make_interval(secs => -:crossing_grace_s) + least(now(), greatest(
              (SELECT max(greatest(created_at, address_changed_at)) FROM users WHERE sandbox_of IS NULL),
              (SELECT max(greatest(created_at, issued_at)) FROM batches WHERE NOT sandbox),
              (SELECT max(created_at) FROM refills WHERE NOT sandbox)))
          AND coalesce(t.held_until, b.held_until, 'infinity')
              > since + make_interval(secs => :crossing_grace_s)
        ORDER BY t.batch_id, t.position""",
    **REVERSAL_RULES,
    **EVENT_RULES,
    **ANSWER_RULES,
}
