"""The audit rules about the logs of organizations and of the platform, in the form of `app.audit.rules`."""

from app.events.event_types import PLATFORM
from app.events.restores import skipped_after
from app.events.sequencer import DIGESTED
from app.postgres.database import digest

# The events of batches and reversals, numbered or not; then those that hold their data.
_OF_ROWS = """
    (SELECT organization_id, sandbox, type, coalesce(batch_id, reversal_id) AS subject_id, id, send_at, credited,
            batch_id, idempotency_key
     FROM events WHERE data IS NULL
     UNION ALL
     SELECT organization_id, sandbox, type, coalesce(batch_id, reversal_id), id, send_at, credited, batch_id, NULL
     FROM unnumbered_events WHERE data IS NULL)"""
_WITH_DATA = """
    (SELECT organization_id, sandbox, type, id, created_at, data FROM events WHERE data IS NOT NULL
     UNION ALL
     SELECT organization_id, sandbox, type, id, created_at, data FROM unnumbered_events WHERE data IS NOT NULL)"""
# How far a log is dropped. What was changed before the youngest dropped event may have lost its own event too.
_DROPPED = """
    LEFT JOIN event_logs l ON (l.organization_id, l.sandbox) = (c.organization_id, c.sandbox)"""
_IS_KEPT = "c.changed_at > coalesce(l.dropped_until, '-infinity')"

EVENT_RULES = {
    # An event without a number is in no log yet: the sequencer numbers it after the commit. No two have one
    # number, so as many events as numbers, all of them within, leave no gap.
    "event sequences rise by one, from the first kept to the last": f"""
        SELECT CASE coalesce(l.organization_id, e.organization_id) WHEN 0 THEN 'the platform'
                    ELSE format('organization %s, %s', coalesce(l.organization_id, e.organization_id),
                                CASE WHEN coalesce(l.sandbox, e.sandbox) THEN 'sandbox' ELSE 'live' END) END AS subject,
               format('%s events from %s to %s, where %s to %s are kept, but for %s', coalesce(e.count, 0),
                      coalesce(e.first::text, 'none'), coalesce(e.last::text, 'none'), coalesce(l.dropped_to + 1, 1),
                      coalesce(l.last_sequence, 0), coalesce(l.skipped, 0)) AS seen
        FROM (SELECT *, {skipped_after("l", "l.dropped_to")} AS skipped FROM event_logs l) l
        FULL JOIN (SELECT organization_id, sandbox, count(*) AS count, min(sequence) AS first, max(sequence) AS last
                   FROM events GROUP BY 1, 2) e
               ON (e.organization_id, e.sandbox) = (l.organization_id, l.sandbox)
        WHERE coalesce(e.count, 0) <> coalesce(l.last_sequence - l.dropped_to - l.skipped, 0)
           OR e.first <= coalesce(l.dropped_to, 0) OR e.last > coalesce(l.last_sequence, 0)
           OR EXISTS (SELECT FROM restores r
                      JOIN events s ON (s.organization_id, s.sandbox) = (r.organization_id, r.sandbox)
                                   AND s.sequence BETWEEN r.skipped_from AND r.skipped_to
                      WHERE (r.organization_id, r.sandbox) = (l.organization_id, l.sandbox))
        ORDER BY coalesce(l.organization_id, e.organization_id), coalesce(l.sandbox, e.sandbox)""",
    # What was refused has no time of its own: at the earliest it was when the batch was accepted. A batch that was
    # cancelled may have awaited an approval. One with `awaiting_since` was approved before, and awaited another.
    "a batch that is over or was answered and a reversal that took something have one event each, of their type": f"""
        SELECT format('%s %s', CASE WHEN coalesce(c.type, e.type) LIKE 'batch.%' THEN 'batch' ELSE 'reversal' END,
                      coalesce(c.subject_id, e.subject_id)) AS subject,
               format('%s events %s%s', coalesce(e.count, 0), coalesce(c.type, e.type),
                      CASE WHEN c.type IS NULL THEN ', where none may be in this log' ELSE '' END) AS seen
        FROM (SELECT organization_id, sandbox, 'batch.' || status AS type, id AS subject_id,
                     coalesce(issued_at, cancelled_at, rejected_at, created_at) AS changed_at, true AS is_sure,
                     false AS may_be_again
              FROM batches WHERE status IN ('issued', 'refused', 'cancelled', 'rejected')
              UNION ALL
              SELECT organization_id, sandbox, 'batch.approved', id, approved_at, approved_at IS NOT NULL,
                     awaiting_since IS NOT NULL
              FROM batches WHERE approved_at IS NOT NULL OR awaiting_since IS NOT NULL
              UNION ALL
              SELECT organization_id, sandbox, 'batch.awaiting_approval', id, coalesce(awaiting_since, created_at),
                     status <> 'cancelled' OR approved_at IS NOT NULL OR awaiting_since IS NOT NULL,
                     awaiting_since IS NOT NULL
              FROM batches WHERE approved_at IS NOT NULL OR status IN ('awaiting_approval', 'rejected', 'cancelled')
              UNION ALL
              SELECT organization_id, sandbox,
                     CASE WHEN is_return THEN 'transaction.returned' ELSE 'reversal.issued' END, id, done_at, true,
                     false
              FROM reversals WHERE reversed_amount > 0) c
        FULL JOIN (SELECT organization_id, sandbox, type, subject_id, count(*) FROM {_OF_ROWS} events
                   WHERE type <> 'batch.scheduled' GROUP BY 1, 2, 3, 4) e
               ON (e.subject_id, e.type, e.organization_id, e.sandbox)
                  = (c.subject_id, c.type, c.organization_id, c.sandbox)
        {_DROPPED}
        WHERE c.type IS NULL OR e.count > 1 AND NOT c.may_be_again OR (e.type IS NULL AND c.is_sure AND {_IS_KEPT})
        ORDER BY coalesce(c.subject_id, e.subject_id)""",
    "the events of a batch tell its send_at, its key and how many were credited": f"""
        SELECT format('batch %s', id) AS subject, min(seen) AS seen
        FROM (
            SELECT coalesce(c.id, e.subject_id) AS id,
                   format('send_at %s, in the last event %s', coalesce(c.send_at::text, 'none'),
                          coalesce(e.send_at::text, 'none')) AS seen
            FROM (SELECT id, organization_id, sandbox, send_at, created_at AS changed_at FROM batches
                  WHERE send_at IS NOT NULL) c
            FULL JOIN (SELECT DISTINCT ON (subject_id) * FROM {_OF_ROWS} events
                       WHERE type IN ('batch.scheduled', 'batch.awaiting_approval', 'batch.approved')
                         AND send_at IS NOT NULL
                       ORDER BY subject_id, id DESC) e
                   ON (e.subject_id, e.organization_id, e.sandbox) = (c.id, c.organization_id, c.sandbox)
            {_DROPPED}
            WHERE c.id IS NULL OR e.send_at <> c.send_at OR (e.id IS NULL AND {_IS_KEPT})
            UNION ALL
            SELECT b.id, format('key %s, in an event %s', b.idempotency_key, coalesce(e.idempotency_key, 'none'))
            FROM batches b JOIN events e ON e.batch_id = b.id
            WHERE b.idempotency_key <> coalesce(e.idempotency_key, '')
            UNION ALL
            SELECT e.subject_id, format('%s credited at the issue, in its event %s', t.count, e.credited)
            FROM {_OF_ROWS} e
            JOIN (SELECT batch_id, count(*) FILTER (WHERE credited AND claimed_at IS NULL) FROM transactions
                  GROUP BY 1) t ON t.batch_id = e.batch_id
            WHERE e.type = 'batch.issued' AND e.credited IS DISTINCT FROM t.count
        ) differing
        GROUP BY id ORDER BY id""",
    "a refill, a key, its limit of a day and its end have one event each, and these no others": f"""
        SELECT subject,
               format('%s events %s, where %s to %s are right', sum(written), type, sum(sure), sum(possible)) AS seen
        FROM (
            SELECT c.organization_id, c.sandbox, c.type, c.subject, 0 AS written, ({_IS_KEPT})::int AS sure,
                   1 AS possible
            FROM (SELECT organization_id, sandbox, 'balance.refilled' AS type,
                         format('refill of %s to %s, %s', amount, balance,
                                coalesce(reference, 'no reference')) AS subject,
                         created_at AS changed_at
                  FROM refills
                  UNION ALL
                  SELECT organization_id, false, 'key.created', format('key %s, sandbox: %s', id, sandbox), created_at
                  FROM api_keys
                  UNION ALL
                  SELECT organization_id, false, 'key.revoked', format('key %s, sandbox: %s', id, sandbox), revoked_at
                  FROM api_keys WHERE revoked_at IS NOT NULL
                  UNION ALL
                  SELECT k.organization_id, k.sandbox, 'key.limit_reached', format('key %s on %s', k.id, d.day),
                         d.limit_reached_at
                  FROM key_days d JOIN api_keys k ON k.id = d.api_key_id WHERE d.limit_reached_at IS NOT NULL) c
            {_DROPPED}
            UNION ALL
            SELECT organization_id, sandbox, type,
                   CASE type WHEN 'balance.refilled'
                             THEN format('refill of %s to %s, %s', data ->> 'amount',
                                         data #>> '{{organization,balance}}',
                                         coalesce(data ->> 'reference', 'no reference'))
                             WHEN 'key.limit_reached'
                             THEN format('key %s on %s', data #>> '{{key,id}}', data ->> 'day')
                             ELSE format('key %s, sandbox: %s', data #>> '{{key,id}}',
                                         CAST(data #>> '{{key,sandbox}}' AS boolean)) END,
                   1, 0, 0
            FROM {_WITH_DATA} e
            WHERE organization_id <> {PLATFORM}
              AND type IN ('balance.refilled', 'key.created', 'key.revoked', 'key.limit_reached')
        ) counted
        GROUP BY organization_id, sandbox, type, subject
        HAVING sum(written) < sum(sure) OR sum(written) > sum(possible)
        ORDER BY organization_id, sandbox, type, subject""",
    # A claim and its event are written by one statement, so their times are close whatever the clock does between two
    # of them. They are paired from the newest on: the oldest events may be dropped.
    "a user's claim at an organization has one event, of the same time and number of transactions": f"""
        SELECT format('user %s', coalesce(c.user_id::text, e.user_id::text, 'none')) AS subject,
               format('organization %s, %s transactions claimed at %s, told %s at %s',
                      coalesce(c.organization_id, e.organization_id), coalesce(c.count, 0),
                      coalesce(c.changed_at::text, 'no time'), coalesce(e.count, 0),
                      coalesce(e.created_at::text, 'no time')) AS seen
        FROM (SELECT organization_id, sandbox, user_id, claimed_at AS changed_at, count(*),
                     row_number() OVER (PARTITION BY organization_id, user_id ORDER BY claimed_at DESC) AS place
              FROM transactions WHERE claimed_at IS NOT NULL GROUP BY 1, 2, 3, 4) c
        FULL JOIN (SELECT organization_id, CAST(data #>> '{{user,id}}' AS bigint) AS user_id, created_at,
                          CAST(data ->> 'count' AS bigint) AS count,
                          row_number() OVER (PARTITION BY organization_id, data #>> '{{user,id}}'
                                             ORDER BY created_at DESC) AS place
                   FROM {_WITH_DATA} events WHERE type = 'transaction.claimed') e
               ON (e.organization_id, e.user_id, e.place) = (c.organization_id, c.user_id, c.place)
        {_DROPPED}
        WHERE (CASE WHEN e.user_id IS NULL THEN NOT {_IS_KEPT}
                    ELSE e.count = c.count AND e.created_at BETWEEN c.changed_at AND c.changed_at + interval '1 min'
               END) IS NOT TRUE
        ORDER BY 1, 2""",
    "an organization is suspended and disabled as its log told last": f"""
        SELECT format('organization %s', o.id) AS subject,
               format('%s: %s, told last: %s', f.off, f.is_off, coalesce(e.type, 'nothing')) AS seen
        FROM organizations o
        CROSS JOIN LATERAL (VALUES ('organization.suspended', 'organization.resumed', o.is_suspended),
                                   ('organization.disabled', 'organization.enabled', o.is_disabled))
                                   f (off, again, is_off)
        LEFT JOIN (SELECT DISTINCT ON (organization_id, kind) *
                   FROM (SELECT *, type IN ('organization.suspended', 'organization.resumed') AS kind
                         FROM {_WITH_DATA} events WHERE type LIKE 'organization.%') e
                   ORDER BY organization_id, kind, id DESC) e
               ON e.organization_id = o.id AND e.type IN (f.off, f.again)
        LEFT JOIN event_logs l ON l.organization_id = o.id AND NOT l.sandbox
        WHERE f.is_off <> CASE WHEN e.type IS NOT NULL THEN e.type = f.off
                               WHEN coalesce(l.dropped_to, 0) > 0 THEN f.is_off ELSE false END
        ORDER BY o.id, f.off""",
    "an event's data is as it was numbered, and tells of a balance that was": f"""
        SELECT format('event %s', id) AS subject, format('%s of organization %s', type, organization_id) AS seen
        FROM events e
        WHERE data IS NOT NULL
          AND (digest IS DISTINCT FROM {digest(DIGESTED, "e")}
               OR (type = 'balance.low' AND NOT EXISTS (
                   SELECT FROM batches b
                   WHERE NOT b.sandbox AND b.organization_id = e.organization_id AND b.status = 'issued'
                     AND b.current_balance = CAST(e.data #>> '{{organization,balance}}' AS bigint))
                   AND NOT EXISTS (
                   SELECT FROM refills r
                   WHERE NOT r.sandbox AND r.organization_id = e.organization_id AND r.amount < 0
                     AND r.balance = CAST(e.data #>> '{{organization,balance}}' AS bigint))))
        ORDER BY id""",
    "a webhook stands within its log": """
        SELECT format('webhook %s', w.id) AS subject,
               format('position %s, where the log of organization %s ends at %s', w.position, w.organization_id,
                      coalesce(l.last_sequence, 0)) AS seen
        FROM webhooks w
        LEFT JOIN event_logs l ON (l.organization_id, l.sandbox) = (w.organization_id, w.sandbox)
        WHERE w.position > coalesce(l.last_sequence, 0)
        ORDER BY w.id""",
    # A refill of a sandbox has the time of its clock: if anything was dropped, its event may be too.
    "a user, an organization and a refill have one event each in the platform's log, and these no others": f"""
        SELECT format('%s %s%s', noun, id, more) AS subject,
               format('%s events %s, where %s to %s are right', sum(written), type, sum(sure), sum(possible)) AS seen
        FROM (
            SELECT c.type, c.noun, c.id, c.more, 0 AS written,
                   coalesce(c.changed_at > l.dropped_until, true)::int AS sure, 1 AS possible
            FROM (SELECT 'user.registered' AS type, 'user' AS noun, id, '' AS more, created_at AS changed_at
                  FROM users WHERE sandbox_of IS NULL
                  UNION ALL
                  SELECT 'organization.created', 'organization', id, '', created_at FROM organizations
                  UNION ALL
                  SELECT 'balance.refilled', 'organization', organization_id,
                         format(', refill of %s to %s, %s, sandbox: %s', amount, balance,
                                coalesce(reference, 'no reference'), sandbox),
                         CASE WHEN sandbox THEN '-infinity' ELSE created_at END
                  FROM refills) c
            LEFT JOIN event_logs l ON l.organization_id = {PLATFORM}
            UNION ALL
            SELECT type, CASE type WHEN 'user.registered' THEN 'user' ELSE 'organization' END,
                   CAST(coalesce(data #>> '{{user,id}}', data #>> '{{organization,id}}') AS bigint),
                   CASE type WHEN 'balance.refilled'
                             THEN format(', refill of %s to %s, %s, sandbox: %s', data ->> 'amount',
                                         data #>> '{{organization,balance}}',
                                         coalesce(data ->> 'reference', 'no reference'),
                                         CAST(data ->> 'sandbox' AS boolean))
                             ELSE '' END,
                   1, 0, 0
            FROM {_WITH_DATA} e
            WHERE organization_id = {PLATFORM}
              AND type IN ('user.registered', 'organization.created', 'balance.refilled')
        ) counted
        GROUP BY type, noun, id, more
        HAVING sum(written) < sum(sure) OR sum(written) > sum(possible)
        ORDER BY type, noun, id, more""",
}
