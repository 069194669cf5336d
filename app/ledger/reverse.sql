-- Take points back: one statement, under the locks that app/ledger/issue.py has taken. It moves back exactly the
-- points that it has marked in the transactions.
--
-- Rows are updated by ctid, within the partition of their batch: under those locks nobody else changes them. The batch
-- is compared by BETWEEN, which no plan can merge or hash whole partitions by. As in app/ledger/issue.sql, no plan may
-- read a whole table.
WITH reversal AS MATERIALIZED (
    SELECT * FROM reversals
    WHERE id = CAST(:id AS bigint) AND organization_id = CAST(:organization_id AS bigint) AND status = 'queued'
), organization AS MATERIALIZED (
    SELECT o.id, o.is_disabled, CASE WHEN r.sandbox THEN o.sandbox_balance ELSE o.balance END AS balance,
           CASE WHEN r.sandbox THEN o.sandbox_ahead ELSE interval '0' END AS ahead
    FROM reversal r CROSS JOIN LATERAL (SELECT * FROM organizations WHERE id = r.organization_id LIMIT 1) o
), candidates AS MATERIALIZED (
    {rows}
), decided AS MATERIALIZED (
    SELECT a.*, coalesce(r.amount, a.points_left) AS wanted,
           CASE WHEN NOT a.debited THEN 'not_debited' WHEN a.points_left = 0 THEN 'already_reversed'
                WHEN r.amount > a.points_left THEN 'more_than_left' END AS code
    FROM candidates a CROSS JOIN reversal r
), total AS MATERIALIZED (
    SELECT coalesce(sum(d.wanted) FILTER (WHERE d.code IS NULL AND NOT (r.atomic AND d.is_short)), 0) AS points,
           coalesce(bool_or(r.atomic AND d.is_short), false) AS takes_nothing
    FROM (SELECT *, bool_or(code IS NOT NULL) OVER () AS is_short FROM decided) d CROSS JOIN reversal r
), refusal AS MATERIALIZED (
    -- A batch that was queued when the reversal was accepted may have been cancelled or refused since.
    SELECT CASE WHEN o.is_disabled THEN CAST(:disabled AS text)
                WHEN EXISTS (SELECT FROM (SELECT status FROM batches WHERE batches.id = r.batch_id
                                                                       AND organization_id = r.organization_id
                                                 LIMIT 1) b
                             WHERE b.status <> 'issued') THEN CAST(:not_issued AS text)
                WHEN r.expected <> t.points THEN CAST(:other_sum AS text)
                WHEN o.balance + t.points > {int64_max} THEN CAST(:too_large AS text) END AS code
    FROM organization o CROSS JOIN total t CROSS JOIN reversal r
), taken AS MATERIALIZED (
    SELECT d.*, CASE WHEN d.code IS NULL AND NOT t.takes_nothing THEN d.wanted ELSE 0 END AS points
    FROM decided d CROSS JOIN total t
    WHERE (SELECT code IS NULL FROM refusal)
), marked AS (
    UPDATE transactions t SET points_left = k.points_left - k.points
    FROM taken k
    WHERE t.batch_id BETWEEN k.batch_id AND k.batch_id AND t.ctid = k.ctid AND k.points > 0
    RETURNING t.batch_id, t.position, t.user_id, t.claimed_at, k.points, t.points_left, t.sandbox, t.organization_id,
              coalesce(t.email_key, t.email) AS email_key
), no_longer_listed AS (
    {no_longer_listed}
), users_debited AS (
    -- Credits that are not folded yet are left out: the later fold leaves out the points taken back here.
    UPDATE user_balances u SET points = u.points - d.points
    FROM (SELECT m.user_id, sum(m.points) AS points FROM marked m
          WHERE m.user_id IS NOT NULL AND (SELECT NOT sandbox FROM reversal)
            AND (m.claimed_at IS NOT NULL
                 OR NOT EXISTS (SELECT FROM unfolded_batches f
                                WHERE f.organization_id = CAST(:organization_id AS bigint) AND f.batch_id = m.batch_id))
          GROUP BY m.user_id OFFSET 0) d
    CROSS JOIN LATERAL (SELECT ctid FROM user_balances
                        WHERE user_id = d.user_id AND organization_id = CAST(:organization_id AS bigint) LIMIT 1) its
    WHERE u.ctid = its.ctid
), moment AS MATERIALIZED (
    SELECT clock_timestamp() + ahead AS now FROM organization
), moved AS MATERIALIZED (
    SELECT coalesce(sum(points), 0)::bigint AS points,
           coalesce(sum(points) FILTER (WHERE user_id IS NULL), 0) AS held_points,
           count(*) FILTER (WHERE user_id IS NULL AND points_left = 0) AS held_count
    FROM marked
), credited AS (
    UPDATE organizations
    SET balance = balance + CASE WHEN r.sandbox THEN 0 ELSE m.points END,
        sandbox_balance = sandbox_balance + CASE WHEN r.sandbox THEN m.points ELSE 0 END,
        held_points = organizations.held_points - CASE WHEN r.sandbox THEN 0 ELSE m.held_points END,
        held_count = organizations.held_count - CASE WHEN r.sandbox THEN 0 ELSE m.held_count END,
        sandbox_held_points = sandbox_held_points - CASE WHEN r.sandbox THEN m.held_points ELSE 0 END,
        sandbox_held_count = sandbox_held_count - CASE WHEN r.sandbox THEN m.held_count ELSE 0 END,
        counted_until = CASE WHEN r.sandbox THEN counted_until ELSE still_counted_until(counted_until, n.now) END,
        sandbox_counted_until = CASE WHEN r.sandbox THEN still_counted_until(sandbox_counted_until, n.now)
                                     ELSE sandbox_counted_until END
    FROM moved m, reversal r, moment n
    WHERE organizations.id = r.organization_id AND m.points > 0
), written AS (
    INSERT INTO reversal_entries (reversal_id, organization_id, position, batch_id, transaction_position, reversed,
                                  code)
    SELECT CAST(:id AS bigint), CAST(:organization_id AS bigint), place, batch_id, position, points, code
    FROM taken ORDER BY place
), codes AS MATERIALIZED (
    SELECT string_agg(place || code, ',' ORDER BY place) AS codes FROM taken WHERE code IS NOT NULL
), entries AS (
    -- Also of credits that are not folded yet: the later fold writes what was credited, whole.
    INSERT INTO user_entries (user_id, organization_id, created_at, transaction_id, reversal_id, amount)
    SELECT m.user_id, CAST(:organization_id AS bigint), n.now, transaction_id(m.batch_id, m.position),
           CAST(:id AS bigint), -m.points
    FROM marked m CROSS JOIN moment n
    WHERE m.user_id IS NOT NULL AND (SELECT NOT sandbox FROM reversal)
    ORDER BY m.user_id, m.batch_id, m.position
), ended AS (
    UPDATE reversals r
    SET status = CASE WHEN f.code IS NULL THEN 'done' ELSE 'refused' END, refusal = f.code, retry_at = NULL,
        -- A refused request does not use up its idempotency key.
        idempotency_key = CASE WHEN f.code IS NULL THEN r.idempotency_key END,
        idempotency_hash = CASE WHEN f.code IS NULL THEN r.idempotency_hash END,
        done_at = CASE WHEN f.code IS NULL THEN n.now END,
        reversed_amount = CASE WHEN f.code IS NULL THEN m.points END,
        current_balance = CASE WHEN f.code IS NULL THEN o.balance + m.points END,
        digest = {digest}
    FROM refusal f, moved m, organization o, codes c, moment n
    WHERE r.id = CAST(:id AS bigint) AND r.organization_id = CAST(:organization_id AS bigint) AND r.status = 'queued'
    RETURNING r.*
), events AS (
    INSERT INTO unnumbered_events (organization_id, sandbox, type, reversal_id, created_at)
    SELECT organization_id, sandbox, 'reversal.issued', id, done_at FROM ended WHERE reversed_amount > 0
)
SELECT id, sandbox, (SELECT count(*) FROM taken), reversed_amount FROM ended
