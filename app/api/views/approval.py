"""`POST /v1/batches/{id}/approve` and `/reject`: another than its sender answers a batch that awaits an approval."""

from flask import Blueprint, Response

from app.api.answers import envelope
from app.api.auth import caller
from app.api.requests.body import read_json, refuse_fields
from app.api.requests.query import refuse_parameters
from app.api.views.batches import read_batch
from app.batches import approval
from app.batches.read import QUEUED
from app.messaging.drains import Job, drains
from app.metrics.record import current_record
from app.postgres.database import transaction

blueprint = Blueprint("approval", __name__)


@blueprint.post("/v1/batches/<int:batch_id>/approve")
def approve(batch_id: int) -> Response:
    """Answer 200 with the batch, queued or scheduled as if accepted now. Works also if it was approved before.

    Raises:
        NotFound: the caller has no such batch.
        OwnBatch: the key has sent it.
        BatchConflict: it does not await an approval.
        MayNotIssue: the organization is disabled or suspended; the batch awaits the approval still.
        LimitReached: as many batches as may be are scheduled.
        NotKnown: somebody holds its organization; ask again.
    """
    who = caller()
    refuse_parameters()
    refuse_fields()
    with transaction() as connection:
        approved = approval.approve(connection, who, batch_id)
        body = read_batch(connection, batch_id, who)
    current_record().batch_id = batch_id
    if approved is not None and approved.status == QUEUED:
        drains.ask(Job(who.organization.id, batch_id, approved.recipient_count, current_record().trace_id))
    return envelope.success(body)


@blueprint.post("/v1/batches/<int:batch_id>/reject")
def reject(batch_id: int) -> Response:
    """Answer 200 with the rejected batch. Works also if it was rejected before; then the first reason stays.

    Raises:
        InvalidRequest: with every fault of the body.
        NotFound: the caller has no such batch.
        OwnBatch: the key has sent it.
        BatchConflict: it does not await an approval.
        NotKnown: somebody holds its organization; ask again.
    """
    who = caller()
    refuse_parameters()
    reason = read_json(approval.read_rejection)
    with transaction() as connection:
        approval.reject(connection, who, batch_id, reason)
        body = read_batch(connection, batch_id, who)
    current_record().batch_id = batch_id
    return envelope.success(body)
