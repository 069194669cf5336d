-- Return the points held too long in one batch: one statement, under the locks that app/ledger/returns.py has taken. It
-- moves back exactly the points that it has marked in the transactions.
--
-- The clock is read once to decide which points are past their `held_until`. Rows are updated as in
-- app/ledger/reverse.sql. As in app/ledger/issue.sql, no plan may read a whole table.
WITH batch AS MATERIALIZED (
    SELECT id, organization_id, sandbox, amount, held_until, time_of(organization_id, sandbox) AS now FROM batches
    WHERE id = CAST(:batch_id AS bigint) AND organization_id = CAST(:organization_id AS bigint)
      AND return_at <= time_of(organization_id, sandbox)
), organization AS MATERIALIZED (
    SELECT CASE WHEN b.sandbox THEN o.sandbox_balance ELSE o.balance END AS balance
    FROM batch b CROSS JOIN LATERAL (SELECT * FROM organizations WHERE id = b.organization_id LIMIT 1) o
), held AS MATERIALIZED (
    SELECT t.batch_id, t.ctid, t.position, coalesce(t.points_left, t.amount, b.amount) AS points,
           coalesce(t.held_until, b.held_until) AS held_until, coalesce(t.held_until, b.held_until) <= b.now AS is_due
    FROM batch b
    CROSS JOIN LATERAL (SELECT ctid, * FROM transactions
                        WHERE batch_id = b.id AND organization_id = b.organization_id
                          AND debited AND NOT credited AND points_left IS DISTINCT FROM 0
                        OFFSET 0) t
), total AS MATERIALIZED (
    SELECT coalesce(sum(points) FILTER (WHERE is_due), 0) AS points,
           min(held_until) FILTER (WHERE NOT is_due) AS next_at
    FROM held
), reversal AS (
    INSERT INTO reversals (id, organization_id, sandbox, status, batch_id, atomic, reason, is_return, created_at,
                           done_at, reversed_amount, current_balance, digest)
    SELECT id, organization_id, sandbox, 'done', batch_id, atomic, reason, is_return, created_at,
           created_at, reversed_amount, current_balance, {digest}
    FROM (SELECT nextval('batches_id_seq') AS id, b.organization_id, b.sandbox, b.id AS batch_id, false AS atomic,
                 'unclaimed' AS reason, true AS is_return, b.now AS created_at, t.points AS reversed_amount,
                 o.balance + t.points AS current_balance
          FROM batch b, organization o, total t
          WHERE t.points > 0 AND o.balance + t.points <= {int64_max}) r
    RETURNING id, done_at
), marked AS (
    UPDATE transactions t SET points_left = 0, returned_at = r.done_at
    FROM held h, reversal r
    WHERE t.batch_id BETWEEN h.batch_id AND h.batch_id AND t.ctid = h.ctid AND h.is_due
    RETURNING t.batch_id, t.position, h.points, r.id AS reversal_id, t.sandbox, t.organization_id,
              coalesce(t.email_key, t.email) AS email_key
), no_longer_listed AS (
    {no_longer_listed}
), moved AS MATERIALIZED (
    SELECT coalesce(sum(points), 0)::bigint AS points, count(*) AS transactions FROM marked
), credited AS (
    UPDATE organizations
    SET balance = balance + CASE WHEN b.sandbox THEN 0 ELSE m.points END,
        sandbox_balance = sandbox_balance + CASE WHEN b.sandbox THEN m.points ELSE 0 END,
        held_points = held_points - CASE WHEN b.sandbox THEN 0 ELSE m.points END,
        held_count = held_count - CASE WHEN b.sandbox THEN 0 ELSE m.transactions END,
        sandbox_held_points = sandbox_held_points - CASE WHEN b.sandbox THEN m.points ELSE 0 END,
        sandbox_held_count = sandbox_held_count - CASE WHEN b.sandbox THEN m.transactions ELSE 0 END,
        counted_until = CASE WHEN b.sandbox THEN counted_until ELSE still_counted_until(counted_until, b.now) END,
        sandbox_counted_until = CASE WHEN b.sandbox THEN still_counted_until(sandbox_counted_until, b.now)
                                     ELSE sandbox_counted_until END
    FROM moved m, batch b
    WHERE organizations.id = b.organization_id AND m.points > 0
), written AS (
    INSERT INTO reversal_entries (reversal_id, organization_id, position, batch_id, transaction_position, reversed)
    SELECT m.reversal_id, b.organization_id, row_number() OVER (ORDER BY m.position) - 1, b.id, m.position, m.points
    FROM marked m, batch b ORDER BY m.position
), events AS (
    INSERT INTO unnumbered_events (organization_id, sandbox, type, reversal_id, created_at)
    SELECT b.organization_id, b.sandbox, 'transaction.returned', r.id, r.done_at FROM reversal r, batch b
)
-- The batch is due again when the next points end, or in an hour if the balance could not take these.
UPDATE batches SET return_at = CASE WHEN m.points = t.points THEN t.next_at ELSE b.now + interval '1 hour' END
FROM batch b, total t, moved m
WHERE batches.id = b.id AND batches.organization_id = b.organization_id
RETURNING b.sandbox, (SELECT id FROM reversal), m.transactions, m.points
