"""Acceptance of a reversal: it is queued among the batches of its organization, unless its key is known already."""

from collections.abc import Sequence
from datetime import datetime
from typing import NamedTuple

from sqlalchemy import Connection, text

from app.api_keys import Caller
from app.batches.batch import AWAITING_APPROVAL, NEVER_ISSUED, SCHEDULED
from app.errors import BatchConflict, BatchNotIssued, IdempotencyKeyReused, OrganizationDisabled, PointsError
from app.postgres import locks
from app.postgres.database import digest, row_with_id
from app.reversals.request import ReverseRequest
from app.reversals.reversal import DIGESTED, QUEUED
from app.scope import SENT_BY, Scope
from app.values.ids import require_id


class BatchScheduled(BatchConflict):
    says = "The batch is scheduled and nobody was debited: cancel it (POST /v1/batches/{id}/cancel)."


class BatchAwaitsApproval(BatchConflict):
    code = "batch_awaiting_approval"
    says = "The batch awaits an approval and nobody was debited: cancel it (POST /v1/batches/{id}/cancel)."


class ReversalLost(PointsError):
    """PostgreSQL has lost an accepted reversal: a standby took over before it had received it."""

    status = 503
    field = "service"
    says = "The database has lost this reversal after accepting it; nothing was taken. Send it again."


class AcceptedReversal(NamedTuple):
    """An accepted reversal: a new reversal, or (`existed`) that of its idempotency key.

    `created_at` is the reversal's. A PostgreSQL that has lost commits uses their ids again, but never the same time.
    """

    reversal_id: int
    status: str
    created_at: datetime
    existed: bool


def require_batch(connection: Connection, who: Caller, request: ReverseRequest) -> str | None:
    """Return the status of the batch that a request names; None when it names transactions.

    Raises:
        NotFound: the caller has, or sees, no such batch in this mode.
    """
    if request.batch_id is None:
        return None
    parameters = {"id": request.batch_id, **who.scope._asdict(), "sent_by": who.sent_by}
    status: str = row_with_id(connection, _BATCH_STATUS, parameters, "batch").status
    return status


_BATCH_STATUS = text(f"""
    SELECT status FROM batches
    WHERE id = :id AND organization_id = :organization_id AND sandbox = :sandbox AND {SENT_BY}
""")


def accept(
    connection: Connection, who: Caller, request: ReverseRequest, idempotency_key: str | None
) -> AcceptedReversal:
    """Queue a reversal. If the idempotency key names a reversal already, return it without any further check.

    Its id is drawn from the sequence of the batches, so it comes after every batch accepted before.

    Raises:
        IdempotencyKeyReused: the key was used with another body.
        NotFound: there is no such batch.
        BatchScheduled, BatchAwaitsApproval: it is not queued yet, so there is nothing to wait for.
        BatchNotIssued: it was cancelled, refused or rejected, so there is nothing to take back.
        OrganizationDisabled: a suspended organization may take points back, a disabled one may not.
    """
    if request.batch_id is not None:
        require_id("batch", request.batch_id)
    scope = {"organization_id": who.organization.id, "sandbox": who.sandbox, "idempotency_key": idempotency_key}
    new = scope | {
        "api_key_id": who.api_key_id,
        "member_id": who.member_id,
        "batch_id": request.batch_id,
        "transaction_ids": None if request.transaction_ids is None else list(request.transaction_ids),
        "amount": request.amount,
        "atomic": request.atomic,
        "reason": request.reason,
        "expected": request.expected,
        "idempotency_hash": None if idempotency_key is None else request.meaning(),
    }
    locks.share(connection, locks.Kind.REVERSALS, [who.organization.id])
    while True:
        known = None if idempotency_key is None else connection.execute(_KNOWN, scope).one_or_none()
        if known is not None:
            if bytes(known.idempotency_hash) != request.meaning():
                raise IdempotencyKeyReused
            require_batch(connection, who, request)  # Another key, which may see more, may have used the key.
            return AcceptedReversal(known.id, known.status, known.created_at, existed=True)
        if who.organization.is_disabled:
            raise OrganizationDisabled
        batch_status = require_batch(connection, who, request)
        if batch_status == SCHEDULED:
            raise BatchScheduled
        if batch_status == AWAITING_APPROVAL:
            raise BatchAwaitsApproval
        if batch_status in NEVER_ISSUED:
            raise BatchNotIssued
        accepted = connection.execute(_ACCEPT, new).one_or_none()
        if accepted is not None:
            return AcceptedReversal(accepted.id, QUEUED, accepted.created_at, existed=False)
        # Another request took the key at the same time. Its reversal exists now, so look again.


def accept_for_nobody(connection: Connection, scope: Scope, transaction_ids: Sequence[int], *, reason: str) -> None:
    """Queue a reversal that the service itself asks for."""
    unsaid = ("api_key_id", "member_id", "batch_id", "amount", "expected", "idempotency_key", "idempotency_hash")
    nobody = dict.fromkeys(unsaid)
    values = {"transaction_ids": list(transaction_ids), "atomic": False, "reason": reason}
    connection.execute(_ACCEPT, {**nobody, **scope._asdict(), **values})


_KNOWN = text("""
    SELECT id, status, created_at, idempotency_hash FROM reversals
    WHERE (organization_id, sandbox, idempotency_key) = (:organization_id, :sandbox, :idempotency_key)
""")
_COLUMNS = """organization_id, sandbox, api_key_id, member_id, batch_id, transaction_ids, amount, atomic, reason,
    expected, idempotency_key, idempotency_hash"""
_ACCEPT = text(f"""
    INSERT INTO reversals (id, created_at, {_COLUMNS}, digest)
    SELECT id, created_at, {_COLUMNS},
           {digest(DIGESTED, "r", is_return="false", refusal="NULL", done_at="NULL", codes="NULL")}
    FROM (SELECT nextval('batches_id_seq') AS id,
                 time_of(CAST(:organization_id AS bigint), CAST(:sandbox AS boolean)) AS created_at,
                 CAST(:organization_id AS bigint) AS organization_id, CAST(:sandbox AS boolean) AS sandbox,
                 CAST(:api_key_id AS bigint) AS api_key_id, CAST(:member_id AS bigint) AS member_id,
                 CAST(:batch_id AS bigint) AS batch_id, CAST(:transaction_ids AS bigint[]) AS transaction_ids,
                 CAST(:amount AS bigint) AS amount, CAST(:atomic AS boolean) AS atomic, CAST(:reason AS text) AS reason,
                 CAST(:expected AS bigint) AS expected,
                 CAST(:idempotency_key AS text) AS idempotency_key, CAST(:idempotency_hash AS bytea) AS idempotency_hash
         ) r
    ON CONFLICT (organization_id, sandbox, idempotency_key) WHERE idempotency_key IS NOT NULL DO NOTHING
    RETURNING id, created_at
""")
