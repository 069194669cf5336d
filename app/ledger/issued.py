"""How many points an organization has issued on each day, from the balances that the books keep.

Every batch, refill and reversal keeps the balance right after it, and each starts from the balance that the one before
has left. So what was debited between two moments is what came in meanwhile, less what the balance has grown. A few
look-ups in indexes tell it, however many batches there were.
"""

from datetime import UTC, date, datetime, time, timedelta

from sqlalchemy import Connection, text


def issued_by_day(
    connection: Connection, organization_id: int, *, sandbox: bool, first: date, last: date
) -> dict[date, int]:
    """Return the points debited on each day in UTC, from `first` to `last`, in this order."""
    days = [first + timedelta(days=number) for number in range((last - first).days + 1)]
    midnights = [datetime.combine(day, time(), UTC) for day in [*days, last + timedelta(days=1)]]
    parameters = {"organization_id": organization_id, "sandbox": sandbox, "midnights": midnights}
    rows = list(connection.execute(_AT_MIDNIGHTS, parameters))
    return {
        day: int(after.came_in - (after.balance - before.balance))
        for day, before, after in zip(days, rows[:-1], rows[1:], strict=True)
    }


# At each midnight: the balance, and what has come in since the midnight before.
_AT_MIDNIGHTS = text("""
    SELECT coalesce(newest.balance, 0) AS balance, refilled.points + taken_back.points AS came_in
    FROM (SELECT at, lag(at) OVER (ORDER BY at) AS before
          FROM unnest(CAST(:midnights AS timestamptz[])) AS midnight (at)) m
    LEFT JOIN LATERAL (
        SELECT balance FROM (
            (SELECT issued_at AS moment, current_balance AS balance FROM batches
             WHERE organization_id = :organization_id AND sandbox = :sandbox AND issued_at < m.at
             ORDER BY issued_at DESC, id DESC LIMIT 1)
            UNION ALL
            (SELECT created_at, balance FROM refills
             WHERE organization_id = :organization_id AND sandbox = :sandbox AND created_at < m.at
             ORDER BY created_at DESC, id DESC LIMIT 1)
            UNION ALL
            (SELECT done_at, current_balance FROM reversals
             WHERE organization_id = :organization_id AND sandbox = :sandbox AND done_at < m.at
             ORDER BY done_at DESC, id DESC LIMIT 1)
        ) of_each ORDER BY moment DESC LIMIT 1
    ) newest ON true
    CROSS JOIN LATERAL (SELECT coalesce(sum(amount), 0) AS points FROM refills
                        WHERE organization_id = :organization_id AND sandbox = :sandbox
                          AND created_at >= m.before AND created_at < m.at) refilled
    CROSS JOIN LATERAL (SELECT coalesce(sum(reversed_amount), 0) AS points FROM reversals
                        WHERE organization_id = :organization_id AND sandbox = :sandbox
                          AND done_at >= m.before AND done_at < m.at) taken_back
    ORDER BY m.at
""")
