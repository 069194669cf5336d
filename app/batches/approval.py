"""Approvals: a batch that awaits one is approved or rejected, once, by another than its sender, or rejected by time.

Approved, it is queued or scheduled as if it had been accepted at that moment, and its place in the queue is that of
then (`app.batches.queue.PLACE`).
"""

from collections.abc import Mapping
from datetime import timedelta
from typing import Any, NamedTuple

from sqlalchemy import Connection, text

from app import organizations
from app.api_keys import Caller
from app.batches import key_limits
from app.batches.accept import SCHEDULED_MAX
from app.batches.errors import BatchNotAwaiting, OwnBatch, ScheduledLimit
from app.batches.read import (
    AWAITING_APPROVAL,
    CANCELLED,
    DIGESTED,
    ISSUED,
    QUEUED,
    REFUSED,
    REJECTED,
    SCHEDULED,
)
from app.batches.schedule import LockedBatch, lock_batch
from app.fields.field import Table
from app.fields.kinds import Name
from app.postgres import locks
from app.postgres.database import digest
from app.settings import Settings

# What nobody has approved or rejected by then is rejected.
ANSWERED_WITHIN_DAYS = 7
ANSWERED_WITHIN = timedelta(days=ANSWERED_WITHIN_DAYS)

REASON_LENGTH_MAX = 255
REASON = Name(
    "reason",
    "Why the batch is rejected; shown on it.",
    "The wrong list",
    length_max=REASON_LENGTH_MAX,
    is_required=True,
)
REJECTION = Table("Rejection", "Why a batch is rejected.", REASON)

_WHAT_IT_IS = {
    QUEUED: "is queued",
    SCHEDULED: "is scheduled",
    ISSUED: "is issued",
    REFUSED: "was refused",
    CANCELLED: "was cancelled",
    REJECTED: "was rejected",
}


def read_rejection(fields: Mapping[str, Any], limits: Settings) -> str:
    """Return the reason of a rejection.

    Raises:
        InvalidRequest: with every fault, each under its field.
    """
    faults = REJECTION.new_faults(fields)
    reason = REASON.read(fields, faults, limits)
    faults.raise_if_any()
    assert reason is not None, "it is sent, and without a fault"
    return reason


def approve(connection: Connection, who: Caller, batch_id: int) -> LockedBatch | None:
    """Approve a batch, and return it as it is then: queued, or scheduled for a `send_at` that is still to come.

    None, and nothing changes, if it was approved before.

    Raises:
        NotFound: the organization has no such batch in this mode.
        OwnBatch: the caller has sent it.
        BatchNotAwaiting: it does not await an approval.
        MayNotIssue: its organization is disabled or suspended; the batch awaits the approval still.
        ScheduledLimit: as many batches as may be are scheduled.
        NotKnown: somebody holds its organization; ask again.
    """
    batch = _lock_for_another(connection, who, batch_id)
    if batch.approved_at is not None:
        return None
    _require_awaiting(batch)
    _require_issuing(connection, who)
    is_later = batch.send_at is not None and batch.send_at > batch.now
    if is_later:
        _require_room(connection, who)
    batch = batch._replace(status=SCHEDULED if is_later else QUEUED)
    connection.execute(_APPROVE, _answer(who, batch_id, batch) | {"status": batch.status})
    if is_later:
        connection.execute(_TELL_SCHEDULED, {"id": batch_id, "organization_id": who.organization.id})
    return batch


def reject(connection: Connection, who: Caller, batch_id: int, reason: str) -> bool:
    """Reject a batch. False, and nothing changes, if it was rejected before.

    Raises:
        NotFound: the organization has no such batch in this mode.
        OwnBatch: the caller has sent it.
        BatchNotAwaiting: it does not await an approval.
        NotKnown: somebody holds its organization; ask again.
    """
    batch = _lock_for_another(connection, who, batch_id)
    if batch.status == REJECTED:
        return False
    _require_awaiting(batch)
    connection.execute(_REJECT, _answer(who, batch_id, batch) | {"reason": reason})
    key_limits.give_back(connection, who.organization.id, [batch_id])
    return True


def count_awaiting(connection: Connection, organization_id: int, *, sandbox: bool) -> int:
    """Return how many batches of an organization await an approval in one mode."""
    scope = {"organization_id": organization_id, "sandbox": sandbox}
    count: int = connection.execute(_COUNT_AWAITING, scope).scalar_one()
    return count


_COUNT_AWAITING = text("""
    SELECT count(*) FROM batches
    WHERE organization_id = :organization_id AND sandbox = :sandbox AND status = 'awaiting_approval'
""")


class Recipient(NamedTuple):
    """A recipient of a batch, with the points for it, whether they are issued or not."""

    email: str
    points: int


def first_recipients(connection: Connection, batch_id: int, *, organization_id: int, at_most: int) -> list[Recipient]:
    """Return the first recipients of a batch in request order."""
    parameters = {"id": batch_id, "organization_id": organization_id, "at_most": at_most}
    return list(map(Recipient._make, connection.execute(_FIRST_RECIPIENTS, parameters)))


_FIRST_RECIPIENTS = text("""
    SELECT r.email, coalesce(b.amount, r.total - r.before)
    FROM batches b
    CROSS JOIN LATERAL unnest(b.emails[1 : :at_most], b.running_totals[1 : :at_most],
                              array_prepend(0, b.running_totals[1 : :at_most]))
                           WITH ORDINALITY AS r (email, total, before, place)
    WHERE b.id = :id AND b.organization_id = :organization_id AND r.email IS NOT NULL ORDER BY r.place
""")


def _lock_for_another(connection: Connection, who: Caller, batch_id: int) -> LockedBatch:
    batch = lock_batch(connection, batch_id, organization_id=who.organization.id, sandbox=who.sandbox)
    if (who.api_key_id, who.member_id) == (batch.api_key_id, batch.member_id):
        raise OwnBatch
    return batch


def _require_awaiting(batch: LockedBatch) -> None:
    if batch.status != AWAITING_APPROVAL:
        was_approved = "" if batch.approved_at is None else "was approved and "
        raise BatchNotAwaiting(f"The batch does not await an approval: it {was_approved}{_WHAT_IT_IS[batch.status]}.")


def _require_issuing(connection: Connection, who: Caller) -> None:
    """Refuse if the organization, whose row is locked now, may not issue."""
    now = organizations.get(connection, who.organization.id, sandbox=who.sandbox)
    refusal = organizations.may_not_issue(is_disabled=now.is_disabled, is_suspended=now.is_suspended)
    if refusal is not None:
        raise refusal


def _require_room(connection: Connection, who: Caller) -> None:
    """Refuse if one more batch may not be scheduled; until this transaction ends, nobody else counts or adds one.

    Who holds this lock never waits for the organization's row, which this transaction has.
    """
    locks.wait_for(connection, locks.Kind.SCHEDULES, who.organization.id)
    parameters = {"organization_id": who.organization.id, "sandbox": who.sandbox, "at_most": SCHEDULED_MAX}
    if connection.execute(_COUNT_SCHEDULED, parameters).scalar_one() >= SCHEDULED_MAX:
        raise ScheduledLimit(SCHEDULED_MAX)


_COUNT_SCHEDULED = text("""
    SELECT count(*) FROM (SELECT FROM batches
                          WHERE organization_id = :organization_id AND sandbox = :sandbox AND status = 'scheduled'
                          LIMIT :at_most) scheduled
""")


def _answer(who: Caller, batch_id: int, batch: LockedBatch) -> dict[str, Any]:
    asked = {"id": batch_id, "organization_id": who.organization.id}
    return {**asked, "now": batch.now, "member_id": who.member_id, "api_key_id": who.api_key_id}


_BY = {
    "answered_by_member_id": "CAST(:member_id AS bigint)",
    "answered_by_key_id": "CAST(:api_key_id AS bigint)",
}
_SET_BY = ", ".join(f"{column} = {value}" for column, value in _BY.items())
_NOW = "CAST(:now AS timestamptz)"
_APPROVE = text(f"""
    WITH approved AS (
        UPDATE batches b SET status = :status, approved_at = {_NOW}, {_SET_BY}, queue_place = nextval('batches_id_seq'),
                             digest = {digest(DIGESTED, "b", approved_at=_NOW, **_BY)}
        WHERE b.id = :id AND b.organization_id = :organization_id
        RETURNING b.organization_id, b.sandbox, b.id, b.send_at, b.approved_at
    )
    INSERT INTO unnumbered_events (organization_id, sandbox, type, batch_id, send_at, created_at)
    SELECT organization_id, sandbox, 'batch.approved', id, send_at, approved_at FROM approved
""")
_TELL_SCHEDULED = text("""
    INSERT INTO unnumbered_events (organization_id, sandbox, type, batch_id, send_at, created_at)
    SELECT organization_id, sandbox, 'batch.scheduled', id, send_at, approved_at FROM batches
    WHERE id = :id AND organization_id = :organization_id
""")
_REASON = "CAST(:reason AS text)"
_REJECT = text(f"""
    WITH rejected AS (
        UPDATE batches b SET status = 'rejected', rejected_at = {_NOW}, {_SET_BY}, rejection_reason = {_REASON},
                             digest = {digest(DIGESTED, "b", rejected_at=_NOW, rejection_reason=_REASON, **_BY)}
        WHERE b.id = :id AND b.organization_id = :organization_id
        RETURNING b.organization_id, b.sandbox, b.id, b.rejected_at
    )
    INSERT INTO unnumbered_events (organization_id, sandbox, type, batch_id, created_at)
    SELECT organization_id, sandbox, 'batch.rejected', id, rejected_at FROM rejected
""")
