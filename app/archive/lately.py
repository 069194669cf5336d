"""What is too young for the archive, because calls still ask for it.

A new send is compared with what was sent lately (app/batches/sent_lately.py), a call whose answer was lost is made
again with its idempotency key, and who waits for a batch or a reversal reads its transactions.
"""

from datetime import UTC, datetime, timedelta

from sqlalchemy import Connection, text

from app.batches import sent_lately
from app.batches.read import IDEMPOTENCY_KEY_KEPT_DAYS
from app.errors import Refused

DAYS = max(sent_lately.DAYS, IDEMPOTENCY_KEY_KEPT_DAYS)


def require_past(before: datetime) -> None:
    """Check that what was over before a day is old enough to go.

    Raises:
        Refused: it may still be asked for.
    """
    latest = datetime.now(UTC) - timedelta(days=DAYS)
    if before > latest:
        raise Refused(
            f"Nothing of the last {DAYS} days is archived, because sends are compared with it and answered from it"
            f" again: --before must be {latest:%Y-%m-%d} or earlier, but is {before:%Y-%m-%d}."
        )


def why_not(connection: Connection, first: int, end: int) -> str | None:
    """Return why a range has to wait for its reversals; None if it does not."""
    reason: str | None = connection.execute(_WHY_NOT, {"first": first, "end": end, "days": DAYS}).scalar()
    return reason


# A key that the upkeep has not forgotten yet still answers.
_WHY_NOT = text("""
    SELECT format('reversal %s took from it in the last %s days', min(r.id), CAST(:days AS int))
    FROM reversals r
    CROSS JOIN LATERAL unnest(reversal_batches(r.batch_id, r.transaction_ids)) AS asked (batch_id)
    WHERE (r.idempotency_key IS NOT NULL
           OR NOT r.is_return AND r.created_at > (SELECT clock_timestamp() - make_interval(days => CAST(:days AS int))))
      AND asked.batch_id >= :first AND asked.batch_id < :end
    HAVING count(*) > 0
""")
