"""The audit rule about the days of keys, in the form of `app.audit.rules`."""

KEY_RULES = {
    "a key's day counts the points of its batches, but for those refused, cancelled or not paid": """
        SELECT format('key %s on %s', api_key_id, day) AS subject,
               format('%s used less %s given back, where its batches count %s', sum(used), sum(given_back),
                      sum(counted)) AS seen
        FROM (
            SELECT api_key_id, day, used, 0 AS given_back, 0 AS counted FROM key_days
            UNION ALL
            SELECT api_key_id, day, 0, points, 0 FROM points_given_back
            UNION ALL
            SELECT b.api_key_id, CAST(b.created_at AT TIME ZONE 'UTC' AS date), 0, 0,
                   CASE WHEN b.status = 'issued' THEN b.debited_amount
                        WHEN b.status IN ('refused', 'cancelled', 'rejected') THEN 0
                        ELSE coalesce(b.amount::numeric * b.recipient_count, b.running_totals[b.recipient_count]) END
            FROM batches b JOIN api_keys k ON k.id = b.api_key_id WHERE k.daily_limit IS NOT NULL
        ) of_each
        GROUP BY api_key_id, day
        HAVING sum(used) - sum(given_back) <> sum(counted)
        ORDER BY api_key_id, day""",
    "a key's day has the limit of its key": """
        SELECT format('key %s on %s', d.api_key_id, d.day) AS subject,
               format('limit %s, of the key %s', d.daily_limit, coalesce(k.daily_limit::text, 'none')) AS seen
        FROM key_days d LEFT JOIN api_keys k ON k.id = d.api_key_id
        WHERE d.daily_limit IS DISTINCT FROM k.daily_limit
        ORDER BY d.api_key_id, d.day""",
}
