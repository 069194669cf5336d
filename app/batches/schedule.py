"""Scheduled batches: released when they are due, moved to another time, or cancelled before the issue.

A scheduled batch is not in the queue, so no drain finds it. Once it is due, a release queues it.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Annotated, NamedTuple

from sqlalchemy import Connection, TextClause, text
from sqlalchemy.exc import DBAPIError

from app.batches import key_limits
from app.batches.batch import (
    AWAITING_APPROVAL,
    CANCELLED,
    DIGESTED,
    NOT_FINAL,
    QUEUED,
    REFUSED,
    REJECTED,
    SCHEDULED,
    points_of,
)
from app.batches.errors import BatchCancelled, BatchNotScheduled, NotKnown
from app.errors import BatchConflict, InvalidRequest
from app.noun import Noun
from app.noun_fields import Points, says
from app.postgres.database import digest, is_locked_out, row_to, row_with_id, shown_sum
from app.postgres.locks import lock_organization
from app.scope import SENT_BY, Scope
from app.values.timestamps import bounds_fault

# The most scheduled batches of an organization in one mode.
SCHEDULED_MAX = 1_000
# What nobody has approved or rejected by then is rejected, and an approval is good for as long.
ANSWERED_WITHIN_DAYS = 7
ANSWERED_WITHIN = timedelta(days=ANSWERED_WITHIN_DAYS)

_REVERSE = "Its points can be taken back: reverse it (POST /v1/points/reverse)."
# Why an issued batch is neither cancelled nor moved.
TOO_LATE_TO_CANCEL = f"The batch is issued and can no longer be cancelled. {_REVERSE}"
TOO_LATE_TO_MOVE = f"The batch is no longer scheduled: it is issued. {_REVERSE}"


def cancel(connection: Connection, batch_id: int, scope: Scope, *, sent_by: int | None = None) -> None:
    """Cancel a batch that awaits an approval, is scheduled or queued. Cancelling it again changes nothing.

    Raises:
        NotFound: the organization, or its key `sent_by`, has sent no such batch in this mode.
        BatchConflict: it is issued, refused or rejected.
        NotKnown: somebody holds its organization; ask again.
    """
    batch = lock_batch(connection, batch_id, scope, sent_by=sent_by)
    status = batch.status
    if status in NOT_FINAL:
        connection.execute(_CANCEL, {"id": batch_id, "organization_id": scope.organization_id, "now": batch.now})
        key_limits.give_back(connection, scope.organization_id, [batch_id])
    elif status in (REFUSED, REJECTED):
        raise BatchConflict(f"The batch was {status}: nobody was debited, so there is nothing to cancel or reverse.")
    elif status != CANCELLED:
        raise BatchConflict(TOO_LATE_TO_CANCEL)


NOW = "CAST(:now AS timestamptz)"


def changing(change: str, kind: str, *, send_at: str = "NULL") -> TextClause:
    """Word a change of a locked batch, with the event that tells it; both are of the moment `:now`."""
    return text(f"""
        WITH changed AS (
            UPDATE batches b SET {change} WHERE b.id = :id AND b.organization_id = :organization_id
            RETURNING b.organization_id, b.sandbox, b.id, b.send_at
        )
        INSERT INTO unnumbered_events (organization_id, sandbox, type, batch_id, send_at, created_at)
        SELECT organization_id, sandbox, '{kind}', id, {send_at}, {NOW} FROM changed
    """)


_CANCEL = changing(
    f"status = 'cancelled', cancelled_at = {NOW}, digest = {digest(DIGESTED, 'b', cancelled_at=NOW)}", "batch.cancelled"
)


def reschedule(
    connection: Connection, batch_id: int, send_at: datetime, scope: Scope, *, sent_by: int | None = None
) -> str | None:
    """Move a scheduled batch to another time, and return its status then; None if it has that time already.

    An approval is good for `ANSWERED_WITHIN`: moved to a later time than that, the batch awaits another.

    Raises:
        NotFound: the organization, or its key `sent_by`, has sent no such batch in this mode.
        BatchCancelled, BatchNotScheduled: it is no longer scheduled.
        InvalidRequest: the time is out of bounds, by PostgreSQL's clock.
        NotKnown: somebody holds its organization; ask again.
    """
    batch = lock_batch(connection, batch_id, scope, sent_by=sent_by)
    if batch.status == CANCELLED:
        raise BatchCancelled
    if batch.status == AWAITING_APPROVAL:
        raise BatchNotScheduled("The batch awaits an approval. Once it is approved, it can be moved.")
    if batch.status != SCHEDULED:
        raise BatchNotScheduled(_WHY_NOT_MOVED.get(batch.status, TOO_LATE_TO_MOVE))
    if (sentence := bounds_fault(send_at, now=batch.now)) is not None:
        raise InvalidRequest({"send_at": [sentence]})
    if send_at == batch.send_at:
        return None
    moved = {"id": batch_id, "organization_id": scope.organization_id, "now": batch.now, "send_at": send_at}
    if batch.approved_at is not None and send_at > batch.approved_at + ANSWERED_WITHIN:
        connection.execute(_AWAIT_ANEW, moved)
        return AWAITING_APPROVAL
    connection.execute(_RESCHEDULE, moved)
    return SCHEDULED


# The event holds the new time, as the event of the acceptance held the first.
_RESCHEDULE = changing("send_at = :send_at", "batch.scheduled", send_at="send_at")
_OF_APPROVAL = dict.fromkeys(("approved_at", "answered_by_member_id", "answered_by_key_id"), "NULL")
_NO_APPROVAL = ", ".join(f"{column} = NULL" for column in (*_OF_APPROVAL, "queue_place"))
_AWAIT_ANEW = changing(
    f"status = 'awaiting_approval', awaiting_since = {NOW}, send_at = :send_at, {_NO_APPROVAL},"
    f" digest = {digest(DIGESTED, 'b', **_OF_APPROVAL)}",
    "batch.awaiting_approval",
    send_at="send_at",
)
_WHY_NOT_MOVED = {
    QUEUED: "The batch is no longer scheduled: it is due and waits to be issued. Until then it can be cancelled.",
    REFUSED: "The batch is no longer scheduled: it was refused, and nobody was debited. Send it again.",
    REJECTED: "The batch is no longer scheduled: it was rejected, and nobody was debited.",
}


class LockedBatch(NamedTuple):
    """A locked batch; `now` is the time in its mode."""

    status: str
    send_at: datetime | None
    api_key_id: int | None
    member_id: int | None
    approved_at: datetime | None
    recipient_count: int
    now: datetime


def lock_batch(connection: Connection, batch_id: int, scope: Scope, *, sent_by: int | None = None) -> LockedBatch:
    """Lock a batch and its organization.

    A drain holds the organization's row while it issues, so a batch is cancelled or issued, and never both; and so with
    approvals and rejections. A release locks only the batch.

    Raises:
        NotFound: the organization, or its key `sent_by`, has sent no such batch in this mode.
        NotKnown: a worker that is slow or frozen holds a row for too long.
    """
    parameters = {"id": batch_id, **scope._asdict(), "sent_by": sent_by}
    try:
        lock_organization(connection, scope.organization_id)
        return LockedBatch._make(row_with_id(connection, _LOCK_BATCH, parameters, "batch"))
    except DBAPIError as error:
        if not is_locked_out(error):
            raise
        raise NotKnown from error


_LOCK_BATCH = text(f"""
    SELECT status, send_at, api_key_id, member_id, approved_at, recipient_count,
           time_of(organization_id, sandbox) AS now
    FROM batches WHERE id = :id AND organization_id = :organization_id AND sandbox = :sandbox AND {SENT_BY}
    FOR NO KEY UPDATE
""")


def release_due(connection: Connection, *, at_most: int) -> list[int]:
    """Queue the due scheduled batches, the longest due first; return the organization of each.

    Batches that another release or a cancellation has locked are skipped.
    """
    return list(connection.execute(_RELEASE_DUE, {"at_most": at_most}).scalars())


# Whether a batch is to be queued. The clock is read once, in a subquery: a value that may change from row to row cannot
# be looked up in an index.
IS_TO_RELEASE = "status = 'scheduled' AND send_at <= (SELECT clock_timestamp())"
# The status is checked twice: a batch may be cancelled after it is read and before it is locked.
#
# The second array is what is due only by the clock of a sandbox that is ahead.
_RELEASE_DUE = text(f"""
    UPDATE batches SET status = 'queued'
    WHERE id = ANY(ARRAY(SELECT id FROM batches WHERE {IS_TO_RELEASE}
                         ORDER BY send_at, id LIMIT :at_most FOR NO KEY UPDATE SKIP LOCKED)
                   || ARRAY(SELECT b.id FROM organizations o CROSS JOIN LATERAL (
                                SELECT id FROM batches
                                WHERE (organization_id, sandbox, send_at) > (o.id, true, (SELECT clock_timestamp()))
                                  AND (organization_id, sandbox, send_at)
                                      <= (o.id, true, (SELECT clock_timestamp()) + o.sandbox_ahead)
                                  AND status = 'scheduled'
                                ORDER BY organization_id, sandbox, send_at LIMIT :at_most
                                FOR NO KEY UPDATE SKIP LOCKED) b
                            WHERE o.sandbox_ahead > '0' LIMIT :at_most))
      AND status = 'scheduled'
    RETURNING organization_id
""")


class Scheduled(NamedTuple):
    """The scheduled batches of the organization in the key's mode. No points are reserved for them."""

    batches: Annotated[int, says("How many batches are scheduled.", 0, ge=0)]
    amount: Annotated[Points, says("The points for all their recipients together, at most what 64 bits hold.", 0)]
    next_at: Annotated[datetime | None, says("When the next one is due; null if there is none.", None)]


schedules = Noun(Scheduled, "batch", "batches")


def scheduled_of(connection: Connection, scope: Scope) -> Scheduled:
    """Return what an organization has scheduled in one mode."""
    return row_to(Scheduled, connection.execute(_SCHEDULED_OF, scope._asdict()).one())


# The points of a batch, if the balance pays everybody who was not erased since.
PAYABLE = f"coalesce(payable_totals[recipient_count], {points_of()})"
_SCHEDULED_OF = text(f"""
    SELECT count(*) AS batches, min(send_at) AS next_at,
           {shown_sum(PAYABLE)} AS amount
    FROM batches WHERE organization_id = :organization_id AND sandbox = :sandbox AND status = 'scheduled'
""")


def now_of(connection: Connection, scope: Scope) -> datetime:
    """Return the time by which schedules are judged; that of a sandbox may be ahead."""
    now: datetime = connection.execute(_NOW_OF, scope._asdict()).scalar_one()
    return now


_NOW_OF = text("SELECT time_of(CAST(:organization_id AS bigint), CAST(:sandbox AS boolean))")


class Payable(NamedTuple):
    """How many recipients of a batch are to be paid, those who were not erased since, and the points for them."""

    recipients: int
    points: int


def payable_of(connection: Connection, batch_ids: Sequence[int], *, organization_id: int) -> dict[int, Payable]:
    """Return whom each of these batches pays, if the balance pays everybody."""
    parameters = {"batch_ids": list(batch_ids), "organization_id": organization_id}
    return {row_id: Payable(*payable) for row_id, *payable in connection.execute(_PAYABLE_OF, parameters)}


_PAYABLE_OF = text(f"""
    SELECT id, CASE WHEN payable_totals IS NULL THEN recipient_count
                    ELSE (SELECT count(DISTINCT total) FROM unnest(payable_totals) AS total WHERE total > 0) END,
           {PAYABLE}
    FROM batches WHERE id = ANY(:batch_ids) AND organization_id = :organization_id
""")


@dataclass(frozen=True, kw_only=True, slots=True)
class AllScheduled:
    """How many batches all organizations have scheduled, and for how many seconds the oldest has been overdue."""

    batches: int
    oldest_overdue_s: float


def count_scheduled(connection: Connection) -> AllScheduled:
    """Count the scheduled batches of all organizations, for monitoring."""
    return row_to(AllScheduled, connection.execute(_COUNT).one())


_COUNT = text("""
    SELECT count(*) AS batches,
           CAST(greatest(0, coalesce(extract(epoch FROM clock_timestamp() - min(send_at)), 0)) AS float)
               AS oldest_overdue_s
    FROM batches WHERE status = 'scheduled'
""")
