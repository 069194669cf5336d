-- Decide, issue and write the due batches of one organization: one statement, under the locks that app/ledger/issue.py
-- has taken. It goes through the queue batch by batch. Each starts from the balance that the previous batch of its mode
-- left. The statement debits exactly what it writes.
--
-- Constraints check that a batch has as many addresses as recipients, and that no balance is overdrawn.
--
-- No user's row is locked or written: `unfolded` notes that these credits are still to be added, and until then they
-- are counted from the transactions (app/users.py). So two organizations that pay the same users never wait for each
-- other. A user registered while this runs is not seen; the points are held until the registration's own claim, or
-- the search for crossed registrations, finds them.
--
-- A batch that was approved has another place in the queue than its id, and is issued by a statement of its own: in what
-- one statement issues, at one time, the ids rise with the balances that follow from each other.
--
-- PostgreSQL keeps the plan, and may make it while the tables are small. So no plan may read a whole table: batches are
-- found in the index of queued batches, the only one with the requested order, and users by address.
WITH RECURSIVE organization AS MATERIALIZED (
    SELECT ctid, id, name, balance, last_refill, sandbox_balance, sandbox_last_refill, held_days, low_balance,
           low_balance_told, created_at, clock_timestamp() AS now, sandbox_ahead,
           CASE WHEN is_disabled THEN %(disabled)s::text WHEN is_suspended THEN %(suspended)s END AS refusal
    FROM organizations
    WHERE id = %(organization_id)s::bigint AND ctid = %(place)s::tid
), due_reversal AS MATERIALIZED (
    -- No batch passes a reversal that was accepted before it.
    SELECT id FROM reversals
    WHERE (organization_id, id) >= (%(organization_id)s::bigint, 1)
      AND (organization_id, id) <= (%(organization_id)s::bigint, {int64_max}) AND {is_due}
    ORDER BY organization_id, id LIMIT 1
), decided AS (
    SELECT 0 AS batches, %(first)s::bigint - 1 AS place, NULL::bigint AS batch_id, false AS sandbox,
           0::bigint AS recipients, balance,
           sandbox_balance, 0::bigint AS opening, 0 AS debited_count, 0::bigint AS debited_amount
    FROM organization
    UNION ALL
    SELECT d.batches + 1, b.place, b.id, b.sandbox, d.recipients + b.recipient_count,
           d.balance - CASE WHEN b.sandbox THEN 0 ELSE a.debited_amount END,
           d.sandbox_balance - CASE WHEN b.sandbox THEN a.debited_amount ELSE 0 END,
           o.opening, a.debited_count, a.debited_amount
    FROM decided d
    CROSS JOIN LATERAL (
        SELECT id, {place} AS place, sandbox, api_key_id, amount, payable_totals,
               coalesce(payable_totals, running_totals) AS totals, atomic, recipient_count, emails, email_keys,
               rehearsed_unpaid
        FROM batches
        WHERE (organization_id, {place}) > (%(organization_id)s::bigint, d.place)
          AND (organization_id, {place}) <= (%(organization_id)s::bigint,
                                             least(%(last)s::bigint, (SELECT id FROM due_reversal))) AND {is_due}
        ORDER BY organization_id, {place} LIMIT 1
    ) b
    CROSS JOIN LATERAL (SELECT CASE WHEN b.sandbox THEN d.sandbox_balance ELSE d.balance END AS opening) o
    CROSS JOIN LATERAL (
        SELECT least(paid_count(o.opening, b.recipient_count, b.amount, b.totals),
                     -- With a development key, a header rehearses a balance that pays nobody, and a reserved recipient
                     -- one that ends before it.
                     CASE WHEN NOT b.sandbox OR b.api_key_id IS NULL THEN NULL
                          WHEN b.rehearsed_unpaid THEN 0
                          ELSE array_position(coalesce(b.email_keys, b.emails), %(insufficient)s::text) - 1
                          END) AS paid
    ) p
    CROSS JOIN LATERAL (
        SELECT CASE WHEN b.atomic AND p.paid < b.recipient_count THEN 0 ELSE p.paid END AS paid
    ) c
    CROSS JOIN LATERAL (
        SELECT CASE WHEN b.totals IS NULL THEN b.amount * c.paid ELSE coalesce(b.totals[c.paid], 0) END
                   AS debited_amount,
               -- Who was erased is among those paid, for nothing: each other's total is another.
               CASE WHEN b.payable_totals IS NULL THEN c.paid
                    ELSE (SELECT count(DISTINCT total) FROM unnest(b.totals[1 : c.paid]) AS total WHERE total > 0)::int
                    END AS debited_count
    ) a
    WHERE d.batches < %(batches_max)s::int
      AND (d.batches = 0 OR d.recipients + b.recipient_count <= %(recipients_max)s::bigint
                            AND b.place = b.id AND d.place = d.batch_id)
), refused AS (
    -- A refused request does not use up its idempotency key.
    UPDATE batches b
    SET status = 'refused', refusal = o.refusal, idempotency_key = NULL, idempotency_hash = NULL,
        digest = {digest_refused}
    FROM decided d, organization o
    WHERE (SELECT refusal IS NOT NULL FROM organization) AND d.batches > 0 AND b.id = d.batch_id
      AND b.organization_id = %(organization_id)s AND b.status = 'queued'
      -- Otherwise the whole queue is read for these few batches.
      AND coalesce(b.queue_place, b.id) <= (SELECT max(place) FROM decided)
    RETURNING b.id, b.sandbox, b.recipient_count, NULL::int AS debited_count, NULL::bigint AS debited_amount
), issued AS (
    UPDATE batches b
    SET status = 'issued', issued_at = o.now, retry_at = NULL,
        held_until = {end_of_hold}, return_at = CASE WHEN d.debited_count > 0 THEN {end_of_hold} END,
        debited_count = d.debited_count, debited_amount = d.debited_amount,
        current_balance = d.opening - d.debited_amount, organization_name = o.name,
        last_refill = CASE WHEN b.sandbox THEN o.sandbox_last_refill ELSE o.last_refill END,
        digest = {digest_issued}
    FROM decided d
    CROSS JOIN LATERAL (SELECT name, last_refill, sandbox_last_refill, held_days,
                               now + CASE WHEN d.sandbox THEN sandbox_ahead ELSE interval '0' END AS now
                        FROM organization) o
    WHERE (SELECT refusal IS NULL FROM organization) AND d.batches > 0 AND b.id = d.batch_id
      AND b.organization_id = %(organization_id)s AND b.status = 'queued'
      -- Otherwise the whole queue is read for these few batches.
      AND coalesce(b.queue_place, b.id) <= (SELECT max(place) FROM decided)
    RETURNING b.id, b.organization_id, b.sandbox, b.amount, b.running_totals, b.recipient_count, b.emails, b.email_keys,
              b.labels, b.item_references, d.opening, d.debited_count, d.debited_amount,
              -- A copy in memory: a stored array would be read whole for each element.
              CASE WHEN b.payable_totals IS NOT NULL THEN b.payable_totals || '{{}}'::bigint[] END AS payable_totals
), unfolded AS (
    INSERT INTO unfolded_batches (organization_id, batch_id)
    SELECT organization_id, id FROM issued WHERE debited_count > 0 AND NOT sandbox
), written AS (
    INSERT INTO transactions (organization_id, batch_id, position, sandbox, user_id, debited, credited, balance,
                              email, email_key, amount, label, reference)
    SELECT b.organization_id, b.id, r.ordinality - 1, b.sandbox,
           -- A sandbox has users of its own, and knows no others.
           CASE WHEN b.sandbox THEN (SELECT id FROM users WHERE users.sandbox_of = b.organization_id
                                                           AND users.email_key = r.email_key)
                ELSE u.id END,
           p.is_debited,
           p.is_debited
           AND (u.id IS NOT NULL
                OR b.sandbox AND (SELECT id FROM users WHERE users.sandbox_of = b.organization_id
                                                         AND users.email_key = r.email_key) IS NOT NULL),
           b.opening - least(coalesce(b.payable_totals[r.ordinality], r.total, b.amount * r.ordinality), b.debited_amount),
           r.email, nullif(r.email_key, r.email), r.total - r.total_before, r.label, r.reference
    FROM issued b
    CROSS JOIN LATERAL unnest(b.emails, coalesce(b.email_keys, b.emails), b.running_totals,
                              (0::bigint || b.running_totals)[1 : b.recipient_count], b.labels, b.item_references)
                           WITH ORDINALITY
                           AS r (email, email_key, total, total_before, label, reference, ordinality)
    CROSS JOIN LATERAL (
        SELECT CASE WHEN b.payable_totals IS NULL THEN r.ordinality <= b.debited_count
                    ELSE b.payable_totals[r.ordinality] <= b.debited_amount
                         AND b.payable_totals[r.ordinality] > coalesce(b.payable_totals[r.ordinality - 1], 0) END
               AS is_debited
    ) p
    LEFT JOIN LATERAL (SELECT id FROM users WHERE users.email_key = r.email_key AND sandbox_of IS NULL LIMIT 1) u
           ON NOT b.sandbox
    ORDER BY b.id, r.ordinality
    RETURNING batch_id, sandbox, credited, amount
), credits AS (
    SELECT batch_id, sandbox, count(*) FILTER (WHERE credited) AS credited, sum(amount) FILTER (WHERE credited) AS points
    FROM written GROUP BY batch_id, sandbox
), debited AS (
    -- What is debited and not credited is held. The batch's amount is looked up, since a join might compare each batch
    -- with every other.
    UPDATE organizations o
    SET balance = balance - d.live, sandbox_balance = sandbox_balance - d.sandbox,
        low_balance_told = CASE WHEN d.live = 0 THEN low_balance_told
                                ELSE coalesce(balance - d.live < low_balance, false) END,
        held_points = held_points + d.live - c.live, held_count = held_count + d.live_count - c.live_count,
        sandbox_held_points = sandbox_held_points + d.sandbox - c.sandbox,
        sandbox_held_count = sandbox_held_count + d.sandbox_count - c.sandbox_count,
        counted_until = still_counted_until(o.counted_until, n.live),
        sandbox_counted_until = still_counted_until(o.sandbox_counted_until, n.sandbox)
    FROM (SELECT ctid, now AS live, now + sandbox_ahead AS sandbox FROM organization) n,
         (SELECT coalesce(sum(debited_amount) FILTER (WHERE NOT sandbox), 0)::bigint AS live,
                 coalesce(sum(debited_amount) FILTER (WHERE sandbox), 0)::bigint AS sandbox,
                 coalesce(sum(debited_count) FILTER (WHERE NOT sandbox), 0) AS live_count,
                 coalesce(sum(debited_count) FILTER (WHERE sandbox), 0) AS sandbox_count
          FROM issued) d,
         (SELECT coalesce(sum(coalesce(points, amount * credited)) FILTER (WHERE NOT sandbox), 0) AS live,
                 coalesce(sum(coalesce(points, amount * credited)) FILTER (WHERE sandbox), 0) AS sandbox,
                 coalesce(sum(credited) FILTER (WHERE NOT sandbox), 0) AS live_count,
                 coalesce(sum(credited) FILTER (WHERE sandbox), 0) AS sandbox_count
          FROM credits
          CROSS JOIN LATERAL (SELECT amount FROM batches WHERE batches.id = credits.batch_id LIMIT 1) b
          WHERE credited > 0) c
    WHERE o.id = %(organization_id)s::bigint AND o.ctid = n.ctid
      AND (d.live_count + d.sandbox_count > 0 OR n.live < o.counted_until OR n.sandbox < o.sandbox_counted_until)
), events AS (
    -- The balance falls from batch to batch, so at most one of them takes it below `low_balance`; or it is below since
    -- that was set, and the first debit tells it.
    INSERT INTO unnumbered_events (organization_id, sandbox, type, batch_id, credited, data, created_at)
    SELECT %(organization_id)s::bigint, sandbox, type, batch_id, credited, data,
           clock_timestamp() + CASE WHEN sandbox THEN (SELECT sandbox_ahead FROM organization) ELSE interval '0' END
    FROM (
        SELECT batch_id AS place, sandbox, 'batch.issued' AS type, batch_id, credited::int, NULL::json AS data
        FROM credits
        UNION ALL
        SELECT id, sandbox, 'batch.refused', id, NULL, NULL FROM refused
        UNION ALL
        SELECT b.id, false, 'balance.low', NULL, NULL,
               json_build_object(
                   'organization', json_build_object(
                       'id', o.id, 'name', o.name, 'is_disabled', false, 'is_suspended', false,
                       'balance', b.opening - b.debited_amount, 'last_refill', o.last_refill,
                       'created_at', to_char(o.created_at AT TIME ZONE 'UTC', 'YYYY-MM-DD"T"HH24:MI:SS.US"Z"')),
                   'low_balance', o.low_balance)
        FROM issued b CROSS JOIN organization o
        WHERE NOT b.sandbox AND b.debited_amount > 0 AND b.opening - b.debited_amount < o.low_balance
          AND (b.opening >= o.low_balance OR b.opening = o.balance AND NOT o.low_balance_told)
    ) happened
    ORDER BY place, batch_id
)
SELECT id, sandbox, recipient_count, debited_count, debited_amount, id < {listed_by_issue_to} FROM issued
UNION ALL
SELECT id, sandbox, recipient_count, debited_count, debited_amount, false FROM refused
ORDER BY id
