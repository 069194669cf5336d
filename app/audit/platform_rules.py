"""The audit rule about the platform's log, in the form of `app.audit.rules`."""

from app.events.log import PLATFORM

_TOLD = f"""
    (SELECT type, data FROM events WHERE organization_id = {PLATFORM}
     UNION ALL SELECT type, data FROM unnumbered_events WHERE organization_id = {PLATFORM})"""

PLATFORM_RULES = {
    # A refill of a sandbox has the time of its clock: if anything was dropped, its event may be too.
    "a user, an organization and a refill have one event each in the platform's log, and these no others": f"""
        SELECT format('%s %s%s', noun, id, more) AS subject,
               format('%s events %s, where %s to %s are right', sum(told), type, sum(sure), sum(possible)) AS seen
        FROM (
            SELECT c.type, c.noun, c.id, c.more, 0 AS told, coalesce(c.changed_at > l.dropped_until, true)::int AS sure,
                   1 AS possible
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
            FROM {_TOLD} e WHERE type IN ('user.registered', 'organization.created', 'balance.refilled')
        ) counted
        GROUP BY type, noun, id, more
        HAVING sum(told) < sum(sure) OR sum(told) > sum(possible)
        ORDER BY type, noun, id, more""",
}
