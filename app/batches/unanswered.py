"""What awaits an approval and is not answered in time is rejected by itself, in small steps."""

from sqlalchemy import Connection, text

from app.batches import key_limits
from app.batches.approval import ANSWERED_WITHIN_DAYS
from app.batches.read import DIGESTED
from app.postgres.database import digest

UNANSWERED = f"Nobody approved or rejected it within {ANSWERED_WITHIN_DAYS} days."


def reject_unanswered(connection: Connection, *, at_most: int) -> int:
    """Reject up to `at_most` batches of one organization that nobody has answered in time; return how many.

    An organization whose row somebody holds is passed over, and waits for the next run.
    """
    parameters = {"at_most": at_most, "days": ANSWERED_WITHIN_DAYS, "reason": UNANSWERED}
    organization_id = connection.execute(_LOCK_ONE_LATE, parameters).scalar_one_or_none()
    if organization_id is None:
        return 0
    # A second statement, so that it sees what the holder of the row before has committed.
    rejected = connection.execute(_REJECT_LATE, parameters | {"organization_id": organization_id}).scalars().all()
    key_limits.give_back(connection, organization_id, rejected)
    return len(rejected)


# The clock is read once, in a subquery: a value that may change from row to row cannot be looked up in an index. The
# second half is what is late only by the clock of a sandbox that is ahead.
_LOCK_ONE_LATE = text("""
    WITH last AS MATERIALIZED (
        SELECT clock_timestamp() - make_interval(days => :days) AS moment
    )
    SELECT id FROM organizations
    WHERE id = ANY(ARRAY(SELECT organization_id FROM batches
                         WHERE status = 'awaiting_approval' AND created_at <= (SELECT moment FROM last)
                         ORDER BY created_at, id LIMIT :at_most)
                   || ARRAY(SELECT o.id FROM organizations o
                            WHERE o.sandbox_ahead > '0'
                              AND EXISTS (SELECT FROM batches
                                          WHERE (organization_id, sandbox) = (o.id, true)
                                            AND created_at <= (SELECT moment FROM last) + o.sandbox_ahead
                                            AND status = 'awaiting_approval')
                            LIMIT :at_most))
    ORDER BY id LIMIT 1 FOR NO KEY UPDATE SKIP LOCKED
""")
_LATE_NOW = "late.now"
_REASON = "CAST(:reason AS text)"
_REJECT_LATE = text(f"""
    WITH late AS MATERIALIZED (
        SELECT b.id, m.now
        FROM (SELECT is_sandbox, time_of(CAST(:organization_id AS bigint), is_sandbox) AS now
              FROM (VALUES (false), (true)) modes (is_sandbox)) m
        CROSS JOIN LATERAL (SELECT id FROM batches
                            WHERE organization_id = :organization_id AND sandbox = m.is_sandbox
                              AND created_at <= m.now - make_interval(days => :days)
                              AND status = 'awaiting_approval'
                            ORDER BY created_at LIMIT :at_most) b
        LIMIT :at_most
    ), rejected AS (
        UPDATE batches b SET status = 'rejected', rejected_at = {_LATE_NOW}, rejection_reason = {_REASON},
                             digest = {digest(DIGESTED, "b", rejected_at=_LATE_NOW, rejection_reason=_REASON)}
        FROM late WHERE b.id = late.id AND b.status = 'awaiting_approval'
        RETURNING b.organization_id, b.sandbox, b.id, b.rejected_at
    )
    INSERT INTO unnumbered_events (organization_id, sandbox, type, batch_id, created_at)
    SELECT organization_id, sandbox, 'batch.rejected', id, rejected_at FROM rejected ORDER BY id
    RETURNING batch_id
""")
