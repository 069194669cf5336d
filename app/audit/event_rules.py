"""The audit rules about the event log, in the form of `app.audit.rules`."""

EVENT_RULES = {
    # An event without a number is in no log yet: the sequencer numbers it after the commit.
    "event sequences rise by one, from the first kept to the last": """
        SELECT format('organization %s, %s', coalesce(l.organization_id, e.organization_id),
                      CASE WHEN coalesce(l.sandbox, e.sandbox) THEN 'sandbox' ELSE 'live' END) AS subject,
               format('%s events from %s to %s, where %s to %s are kept', coalesce(e.count, 0),
                      coalesce(e.first::text, 'none'), coalesce(e.last::text, 'none'), coalesce(l.dropped_to + 1, 1),
                      coalesce(l.last_sequence, 0)) AS seen
        FROM event_logs l
        FULL JOIN (SELECT organization_id, sandbox, count(*) AS count, min(sequence) AS first, max(sequence) AS last
                   FROM events GROUP BY 1, 2) e
               ON (e.organization_id, e.sandbox) = (l.organization_id, l.sandbox)
        WHERE coalesce(e.count, 0) <> coalesce(l.last_sequence - l.dropped_to, 0)
           OR e.first <> coalesce(l.dropped_to, 0) + 1 OR e.last <> coalesce(l.last_sequence, 0)
        ORDER BY coalesce(l.organization_id, e.organization_id), coalesce(l.sandbox, e.sandbox)""",
    # A batch issued before the youngest dropped event may have lost its own event too.
    "an issued batch and a reversal that took something have one event each": """
        SELECT format('%s %s', coalesce(a.noun, e.noun), coalesce(a.id, e.id)) AS subject,
               format('%s events of it%s', coalesce(e.count, 0),
                      CASE WHEN a.id IS NULL THEN ', where none may be in this log' ELSE '' END) AS seen
        FROM (SELECT 'batch' AS noun, id, organization_id, sandbox, issued_at AS ended_at
              FROM batches WHERE status = 'issued'
              UNION ALL
              SELECT 'reversal', id, organization_id, sandbox, done_at FROM reversals WHERE reversed_amount > 0) a
        FULL JOIN (SELECT noun, id, organization_id, sandbox, count(*) AS count
                   FROM (SELECT CASE WHEN batch_id IS NULL THEN 'reversal' ELSE 'batch' END AS noun,
                                coalesce(batch_id, reversal_id) AS id, organization_id, sandbox
                         FROM events WHERE type = 'batch.issued' OR reversal_id IS NOT NULL
                         UNION ALL
                         SELECT CASE WHEN batch_id IS NULL THEN 'reversal' ELSE 'batch' END,
                                coalesce(batch_id, reversal_id), organization_id, sandbox
                         FROM unnumbered_events WHERE type = 'batch.issued' OR reversal_id IS NOT NULL) told
                   GROUP BY 1, 2, 3, 4) e
               ON (e.noun, e.id, e.organization_id, e.sandbox) = (a.noun, a.id, a.organization_id, a.sandbox)
        LEFT JOIN event_logs l ON (l.organization_id, l.sandbox) = (a.organization_id, a.sandbox)
        WHERE a.id IS NULL OR e.count > 1 OR (e.id IS NULL AND a.ended_at > coalesce(l.dropped_until, '-infinity'))
        ORDER BY coalesce(a.noun, e.noun), coalesce(a.id, e.id)""",
}
