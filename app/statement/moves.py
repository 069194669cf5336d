"""All that moves a balance, as SQL: each row with the moment that puts it on a day, and what it adds to that day."""

# A batch counts when it was issued, a reversal when it was done. A reset of the sandbox is a refill, which may take
# points away. The columns have one type in all parts, so that PostgreSQL looks each part up in its index.
MOVES = """
    SELECT organization_id, sandbox, issued_at AS moment, CAST(0 AS bigint) AS refilled, debited_amount AS debited,
           CAST(0 AS bigint) AS reversed, CAST(0 AS bigint) AS returned, 1 AS batches, recipient_count AS transactions,
           recipient_count - debited_count AS unpaid
    FROM batches WHERE issued_at IS NOT NULL
    UNION ALL
    SELECT organization_id, sandbox, created_at, amount, CAST(0 AS bigint), CAST(0 AS bigint), CAST(0 AS bigint),
           0, 0, 0
    FROM refills
    UNION ALL
    SELECT organization_id, sandbox, done_at, CAST(0 AS bigint), CAST(0 AS bigint),
           CASE WHEN is_return THEN 0 ELSE reversed_amount END, CASE WHEN is_return THEN reversed_amount ELSE 0 END,
           0, 0, 0
    FROM reversals WHERE done_at IS NOT NULL"""

# What is summed of a day.
SUMS = ("refilled", "debited", "reversed", "returned", "batches", "transactions", "unpaid")

DAY_OF_MOMENT = "CAST(moment AT TIME ZONE 'UTC' AS date)"


def begin_of(day: str) -> str:
    """Word in SQL the moment at which a day in UTC begins."""
    return f"CAST({day} AS timestamp) AT TIME ZONE 'UTC'"
