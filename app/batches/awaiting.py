"""What awaits an approval: which sends do, until when, and the rejection of what nobody answers in time."""

from datetime import datetime

from sqlalchemy import Connection, text

from app.batches import key_limits
from app.batches.batch import DIGESTED
from app.batches.schedule import ANSWERED_WITHIN, ANSWERED_WITHIN_DAYS
from app.postgres.database import digest
from app.scope import Scope

# Whether a send `s` needs one; `k` is its key or member, `o` its organization. It is decided only as the send is
# accepted (accept.sql): before a change of `approval_above` or after it, by the snapshot of that statement.
IS_NEEDED = """
    o.approval_above IS NOT NULL AND (k.member_id IS NOT NULL OR o.approval_of = 'all')
    AND coalesce(s.amount * cardinality(s.emails), s.running_totals[cardinality(s.emails)]) > o.approval_above
"""
# Since when a batch awaits its approval: since it was accepted, or was moved beyond what its approval was good for.
AWAITING_SINCE = "coalesce(awaiting_since, created_at)"


def count_awaiting(connection: Connection, scope: Scope) -> int:
    """Return how many batches of an organization await an approval in one mode."""
    count: int = connection.execute(_COUNT_AWAITING, scope._asdict()).scalar_one()
    return count


_COUNT_AWAITING = text("""
    SELECT count(*) FROM batches
    WHERE organization_id = :organization_id AND sandbox = :sandbox AND status = 'awaiting_approval'
""")


def answer_by(connection: Connection, batch_id: int, *, organization_id: int) -> datetime:
    """Return until when a batch can be approved or rejected."""
    since: datetime = connection.execute(_SINCE, {"id": batch_id, "organization_id": organization_id}).scalar_one()
    return since + ANSWERED_WITHIN


_SINCE = text(f"SELECT {AWAITING_SINCE} FROM batches WHERE id = :id AND organization_id = :organization_id")


UNANSWERED = f"Nobody approved or rejected it within {ANSWERED_WITHIN_DAYS} days."


def reject_unanswered(connection: Connection, *, at_most: int) -> int:
    """Reject up to `at_most` batches of an organization that nobody has answered in time; return how many.

    An organization whose row somebody holds is passed over, and waits for the next run.
    """
    organization_id = connection.execute(_LOCK_ONE_LATE, {"at_most": at_most}).scalar_one_or_none()
    if organization_id is None:
        return 0
    # A second statement, so that it sees what the holder of the row before has committed.
    parameters = {"organization_id": organization_id, "at_most": at_most, "reason": UNANSWERED}
    rejected = connection.execute(_REJECT_LATE, parameters).scalars().all()
    key_limits.give_back(connection, organization_id, rejected)
    return len(rejected)


# The clock is read once, in a subquery: a value that may change from row to row cannot be looked up in an index.
_LAST = f"(SELECT clock_timestamp() - interval '{ANSWERED_WITHIN_DAYS} days')"
IS_LATE = f"status = 'awaiting_approval' AND {AWAITING_SINCE} <= {_LAST}"
# The second half is what is late only by the clock of a sandbox that is ahead.
_LOCK_ONE_LATE = text(f"""
    SELECT id FROM organizations
    WHERE id = ANY(ARRAY(SELECT organization_id FROM batches WHERE {IS_LATE}
                         ORDER BY {AWAITING_SINCE}, id LIMIT :at_most)
                   || ARRAY(SELECT o.id FROM organizations o
                            WHERE o.sandbox_ahead > '0'
                              AND EXISTS (SELECT FROM batches
                                          WHERE (organization_id, sandbox) = (o.id, true)
                                            AND {AWAITING_SINCE} <= {_LAST} + o.sandbox_ahead
                                            AND status = 'awaiting_approval')
                            LIMIT :at_most))
    ORDER BY id LIMIT 1 FOR NO KEY UPDATE SKIP LOCKED
""")
_REASON = "CAST(:reason AS text)"
_LATE_NOW = "late.now"
_REJECT_LATE = text(f"""
    WITH late AS MATERIALIZED (
        SELECT b.id, m.now
        FROM (SELECT is_sandbox, time_of(CAST(:organization_id AS bigint), is_sandbox) AS now
              FROM (VALUES (false), (true)) modes (is_sandbox)) m
        CROSS JOIN LATERAL (SELECT id FROM batches
                            WHERE organization_id = :organization_id AND sandbox = m.is_sandbox
                              AND {AWAITING_SINCE} <= m.now - interval '{ANSWERED_WITHIN_DAYS} days'
                              AND status = 'awaiting_approval'
                            ORDER BY {AWAITING_SINCE} LIMIT :at_most) b
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
