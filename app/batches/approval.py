"""Approvals: a batch that awaits its approval (app/batches/awaiting.py) is answered once, by another than its sender.

Approved, it is queued or scheduled as if it had been accepted at that moment, and its place in the queue is that of
then (`app.batches.queue.PLACE`).
"""

from typing import Any

from sqlalchemy import Connection, text

from app import organizations
from app.api_keys import Caller
from app.batches import awaiting, key_limits
from app.batches.batch import (
    AWAITING_APPROVAL,
    CANCELLED,
    DIGESTED,
    ISSUED,
    QUEUED,
    REFUSED,
    REJECTED,
    SCHEDULED,
    Batch,
    batches,
)
from app.batches.errors import BatchNotAwaiting, OwnBatch, ScheduledLimit
from app.batches.schedule import (
    NOW,
    SCHEDULED_MAX,
    LockedBatch,
    changing,
    lock_batch,
    scheduled_of,
)
from app.errors import NotFound
from app.fields.field import Table
from app.fields.kinds import Name
from app.postgres import locks
from app.postgres.database import digest
from app.scope import Scope
from app.values.key_bounds import APPROVE

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


read_rejection = REASON.read_alone


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
    if batch.approved_at is not None and sees(who, batches.get(connection, batch_id, who.scope)):
        return None
    _require_awaiting(connection, who, batch_id, batch)
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
    if batch.status == REJECTED and sees(who, batches.get(connection, batch_id, who.scope)):
        return False
    _require_awaiting(connection, who, batch_id, batch)
    connection.execute(_REJECT, _answer(who, batch_id, batch) | {"reason": reason})
    key_limits.give_back(connection, who.organization.id, [batch_id])
    return True


def require_seen(who: Caller, batch: Batch) -> None:
    """Refuse a batch that the caller does not see.

    Raises:
        NotFound: as if there were no such batch.
    """
    if not sees(who, batch):
        raise NotFound("batch", batch.id)


def sees(who: Caller, batch: Batch) -> bool:
    """Tell whether the caller sees a batch.

    A key without the scope `read` sees what it has sent; with `approve`, also what awaits an approval or what it has
    approved or rejected.
    """
    has_answered = batch.approval is not None and batch.approval["api_key_id"] == who.api_key_id
    may_answer = has_answered or batch.status == AWAITING_APPROVAL
    return who.sent_by in (None, batch.api_key_id) or (may_answer and who.bounds.allow((APPROVE,)))


def _lock_for_another(connection: Connection, who: Caller, batch_id: int) -> LockedBatch:
    batch = lock_batch(connection, batch_id, who.scope)
    if is_own(connection, who, batch):
        raise OwnBatch
    return batch


def is_own(connection: Connection, who: Caller, batch: Batch | LockedBatch) -> bool:
    """Tell whether the caller, as the person behind a member or a key, is the one who has sent a batch."""
    if (who.api_key_id, who.member_id) == (batch.api_key_id, batch.member_id):
        return True
    senders = {"sending_member": batch.member_id, "sending_key": batch.api_key_id}
    parameters = senders | {"member_id": who.member_id, "api_key_id": who.api_key_id}
    return bool(connection.execute(_IS_OWN, parameters).scalar_one())


def is_one_person(sender: tuple[str, str], other: tuple[str, str]) -> str:
    """Return the SQL that tells whether two are one person; each is the ids of a member and of a key, one of them null.

    Members with the same address are one person, removed ones too, and a key is the member who made it. Two keys that
    a program of the platform or an operator has made are two programs.
    """

    def member(of: tuple[str, str]) -> str:
        member_id, key_id = (f"CAST({name} AS bigint)" for name in of)
        return f"coalesce({member_id}, (SELECT made_by_member_id FROM api_keys WHERE id = {key_id}))"

    return f"""
        EXISTS (SELECT FROM members s JOIN members o ON o.email_key = s.email_key
                WHERE s.id = {member(sender)} AND o.id = {member(other)})
    """


_IS_OWN = text(f"SELECT {is_one_person((':sending_member', ':sending_key'), (':member_id', ':api_key_id'))}")


TO_ANSWER_MAX = 100


def count_to_answer(connection: Connection, scope: Scope, *, member_id: int) -> int:
    """Return how many batches await an answer that this member may give, up to `TO_ANSWER_MAX`."""
    parameters = {**scope._asdict(), "member_id": member_id, "at_most": TO_ANSWER_MAX}
    count: int = connection.execute(_TO_ANSWER, parameters).scalar_one()
    return count


_TO_ANSWER = text(f"""
    SELECT count(*) FROM (
        SELECT FROM batches b
        WHERE b.organization_id = :organization_id AND b.sandbox = :sandbox AND b.status = 'awaiting_approval'
          AND NOT {is_one_person(("b.member_id", "b.api_key_id"), (":member_id", "NULL"))}
        LIMIT :at_most
    ) awaiting
""")


def _require_awaiting(connection: Connection, who: Caller, batch_id: int, batch: LockedBatch) -> None:
    if batch.status == AWAITING_APPROVAL:
        # It is too late before upkeep has rejected it, too.
        if batch.now >= awaiting.answer_by(connection, batch_id, organization_id=who.organization.id):
            raise BatchNotAwaiting(f"The batch does not await an approval any more. {awaiting.UNANSWERED}")
    else:
        was_approved = "" if batch.approved_at is None else "was approved and "
        raise BatchNotAwaiting(f"The batch does not await an approval: it {was_approved}{_WHAT_IT_IS[batch.status]}.")


def _require_issuing(connection: Connection, who: Caller) -> None:
    """Refuse if the organization, whose row is locked now, may not issue."""
    now = organizations.get(connection, who.scope)
    refusal = organizations.may_not_issue(is_disabled=now.is_disabled, is_suspended=now.is_suspended)
    if refusal is not None:
        raise refusal


def _require_room(connection: Connection, who: Caller) -> None:
    """Refuse if no further batch may be scheduled; until this transaction ends, nobody else counts or adds any.

    Who holds this lock never waits for the organization's row, which this transaction has.
    """
    locks.wait_for(connection, locks.Kind.SCHEDULES, who.organization.id)
    if scheduled_of(connection, who.scope).batches >= SCHEDULED_MAX:
        raise ScheduledLimit(SCHEDULED_MAX)


def _answer(who: Caller, batch_id: int, batch: LockedBatch) -> dict[str, Any]:
    which = {"id": batch_id, "organization_id": who.organization.id}
    return {**which, "now": batch.now, "member_id": who.member_id, "api_key_id": who.api_key_id}


_BY = {
    "answered_by_member_id": "CAST(:member_id AS bigint)",
    "answered_by_key_id": "CAST(:api_key_id AS bigint)",
}
_SET_BY = ", ".join(f"{column} = {value}" for column, value in _BY.items())
_APPROVE = changing(
    f"status = :status, approved_at = {NOW}, {_SET_BY}, queue_place = nextval('batches_id_seq'),"
    f" digest = {digest(DIGESTED, 'b', approved_at=NOW, **_BY)}",
    "batch.approved",
    send_at="send_at",
)
_TELL_SCHEDULED = text("""
    INSERT INTO unnumbered_events (organization_id, sandbox, type, batch_id, send_at, created_at)
    SELECT organization_id, sandbox, 'batch.scheduled', id, send_at, approved_at FROM batches
    WHERE id = :id AND organization_id = :organization_id
""")
_REASON = "CAST(:reason AS text)"
_REJECT = changing(
    f"status = 'rejected', rejected_at = {NOW}, {_SET_BY}, rejection_reason = {_REASON},"
    f" digest = {digest(DIGESTED, 'b', rejected_at=NOW, rejection_reason=_REASON, **_BY)}",
    "batch.rejected",
)
