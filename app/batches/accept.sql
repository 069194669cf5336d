-- Find the senders of one or many sends, each by its API key or as a member, and write their batches: one statement.
-- A member's role is checked again: it may have been taken away since the page was shown.
--
-- `fresh` draws ids and times in the order of the sends, so both rise together, and lists are newest first by either.
-- It draws one more id for each 16 recipients, so a range of ids holds a bounded number of transactions (`_ID_RANGE` in
-- app/pages/addresses.py). A send that gets no new batch draws none.
--
-- `written` inserts in the order of the idempotency keys, so that two groups with the same keys cannot deadlock.
--
-- PostgreSQL may plan this while the tables are small, and keeps the plan. So each row is looked up by itself
-- (LIMIT 1), which rules out a join that reads a whole table. `known` sorts as the index of idempotency keys does.
--
-- Of a batch that an erasure has changed, the hash of the body is empty, and `is_same` is NULL: app/batches/accept.py
-- compares what is left.
--
-- `scheduled` decides whether one more batch may be scheduled. It counts the scheduled batches in the only index with
-- the requested order, and not beyond the limit. Other sends pay nothing for it.
--
-- `needs_approval` is said in app/batches/awaiting.py, and decided here alone.
--
-- A key's last use is noted separately, once a minute (app/api_keys.py).
--
-- A key with bounds is unknown here. Two other texts of this statement, made in app/batches/accept.py, are for such
-- keys alone: one that writes, and one that writes nothing and tells which sends would make a batch.
WITH asked AS MATERIALIZED (
    SELECT s.index, s.amount, s.running_totals, s.atomic, s.label, s.emails, s.email_keys, s.labels, s.item_references,
           {kept}, s.send_at, s.rehearsed_unpaid, s.idempotency_key, s.idempotency_hash,
           k.id AS api_key_id, k.member_id, k.sandbox, o.id AS organization_id, o.is_disabled, o.is_suspended,
           o.ahead, clock_timestamp() + o.ahead AS now,
           {needs_approval} AS needs_approval,
           k.last_used_at IS NULL OR k.last_used_at < clock_timestamp() - interval '1 minute' AS key_use_is_old
    FROM jsonb_to_recordset(%(sends)s::jsonb) AS s (
        index int, key_hash text, member_id bigint, sandbox boolean, amount bigint, running_totals bigint[], atomic boolean, label text, emails text[],
        email_keys text[], labels text[], item_references text[], {kept_as_text}, send_at timestamptz, rehearsed_unpaid boolean,
        idempotency_key text COLLATE "C", idempotency_hash text)
    CROSS JOIN LATERAL (
        SELECT id, CAST(NULL AS bigint) AS member_id, sandbox, organization_id, last_used_at
        FROM api_keys WHERE hash = decode(s.key_hash, 'hex') AND revoked_at IS NULL AND {is_of_kind}
        UNION ALL
        SELECT NULL, id, s.sandbox, organization_id, clock_timestamp()
        FROM members WHERE id = s.member_id AND removed_at IS NULL AND role IN ('sender', 'approver', 'admin')
        LIMIT 1
    ) k
    CROSS JOIN LATERAL (
        SELECT id, is_disabled, is_suspended, approval_above, approval_of,
               CASE WHEN k.sandbox THEN sandbox_ahead ELSE interval '0' END AS ahead
        FROM organizations WHERE organizations.id = k.organization_id LIMIT 1
    ) o
), known AS MATERIALIZED (
    SELECT a.index, b.id, b.status, nullif(b.idempotency_hash, '') = decode(a.idempotency_hash, 'hex') AS is_same, b.created_at
    FROM asked a
    CROSS JOIN LATERAL (
        SELECT * FROM batches
        WHERE (organization_id, sandbox, idempotency_key) >= (a.organization_id, a.sandbox, a.idempotency_key)
          AND idempotency_key IS NOT NULL
        ORDER BY organization_id, sandbox, idempotency_key LIMIT 1
    ) b
    WHERE (b.organization_id, b.sandbox, b.idempotency_key) = (a.organization_id, a.sandbox, a.idempotency_key)
      AND a.idempotency_key IS NOT NULL
), scheduled AS MATERIALIZED (
    SELECT a.index, w.count + row_number() OVER (PARTITION BY a.organization_id, a.sandbox ORDER BY a.index)
                    <= %(scheduled_max)s::int AS has_room
    FROM asked a
    CROSS JOIN LATERAL (
        SELECT count(*) AS count FROM (
            SELECT FROM batches
            WHERE (organization_id, sandbox, send_at) >= (a.organization_id, a.sandbox, '-infinity')
              AND (organization_id, sandbox, send_at) <= (a.organization_id, a.sandbox, 'infinity')
              AND status = 'scheduled'
            ORDER BY organization_id, sandbox, send_at LIMIT %(scheduled_max)s::int
        ) waiting
    ) w
    WHERE a.send_at BETWEEN a.now + %(earliest)s::interval AND a.now + %(latest)s::interval
      AND NOT EXISTS (SELECT FROM known k WHERE k.index = a.index)
), fresh AS MATERIALIZED (
    SELECT a.*, clock_timestamp() + a.ahead AS created_at,
           (SELECT max(nextval('batches_id_seq')) FROM generate_series(0, cardinality(a.emails) / 16)) AS id
    FROM (SELECT * FROM asked ORDER BY index) a
    WHERE NOT a.is_disabled AND NOT a.is_suspended AND NOT EXISTS (SELECT FROM known k WHERE k.index = a.index)
      AND (a.send_at IS NULL OR EXISTS (SELECT FROM scheduled s WHERE s.index = a.index AND s.has_room)) AND {may_write}
), written AS (
    INSERT INTO batches (id, organization_id, sandbox, api_key_id, member_id, amount, running_totals, atomic, label,
                         recipient_count, emails, email_keys, labels, item_references, {kept},
                         rehearsed_unpaid, idempotency_key, idempotency_hash, created_at, send_at, status, digest)
    OVERRIDING SYSTEM VALUE
    SELECT id, organization_id, sandbox, api_key_id, member_id, amount, running_totals, atomic, label,
           cardinality(emails), emails, email_keys, labels, item_references, {kept_as_typed},
           rehearsed_unpaid, idempotency_key, decode(idempotency_hash, 'hex'), created_at, send_at,
           CASE WHEN needs_approval THEN 'awaiting_approval' WHEN send_at IS NULL THEN 'queued' ELSE 'scheduled' END,
           {digest}
    FROM fresh
    ORDER BY organization_id, sandbox, idempotency_key, index
    ON CONFLICT (organization_id, sandbox, idempotency_key) WHERE idempotency_key IS NOT NULL DO NOTHING
    RETURNING id, organization_id, sandbox, send_at, created_at, status
), events AS (
    INSERT INTO unnumbered_events (organization_id, sandbox, type, batch_id, send_at, created_at)
    SELECT organization_id, sandbox, 'batch.' || status, id, send_at, created_at
    FROM written WHERE status <> 'queued' ORDER BY id
)
SELECT a.index, a.is_disabled, a.is_suspended, k.is_same, a.now, coalesce(s.has_room, true) AS has_room,
       a.api_key_id, a.key_use_is_old, a.organization_id, coalesce(k.id, w.id) AS batch_id,
       coalesce(k.status, w.status) AS status,
       k.id IS NOT NULL AS existed, coalesce(k.created_at, f.created_at)
FROM asked a
LEFT JOIN known k ON k.index = a.index
LEFT JOIN scheduled s ON s.index = a.index
LEFT JOIN fresh f ON f.index = a.index
LEFT JOIN written w ON w.id = f.id
