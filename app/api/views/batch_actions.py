"""`/v1/batches/{id}`: approve, reject, cancel and move a batch."""

from flask import Blueprint, Response

from app.api.answers import envelope
from app.api.auth import caller_without_query
from app.api.requests.body import read_json, refuse_fields
from app.api.views.batches import read_batch
from app.batches import approval, schedule
from app.batches.batch import QUEUED
from app.batches.request import read_reschedule
from app.messaging.jobs import Job
from app.messaging.requests import drains
from app.metrics.requests import current_record
from app.postgres.database import transaction

blueprint = Blueprint("batch_actions", __name__)


@blueprint.post("/v1/batches/<int:batch_id>/approve")
def approve(batch_id: int) -> Response:
    """Answer 200 with the batch, queued or scheduled as if accepted now. Works also if it was approved before."""
    who = caller_without_query()
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
    """Answer 200 with the rejected batch. Works also if it was rejected before; then the first reason stays."""
    who = caller_without_query()
    reason = read_json(approval.read_rejection)
    with transaction() as connection:
        approval.reject(connection, who, batch_id, reason)
        body = read_batch(connection, batch_id, who)
    current_record().batch_id = batch_id
    return envelope.success(body)


@blueprint.post("/v1/batches/<int:batch_id>/cancel")
def cancel(batch_id: int) -> Response:
    """Answer 200 with the cancelled batch. Works on a cancelled batch too, and if the organization may not issue."""
    who = caller_without_query()
    refuse_fields()
    with transaction() as connection:
        schedule.cancel(connection, batch_id, organization_id=who.organization.id, sandbox=who.sandbox)
        body = read_batch(connection, batch_id, who)
    current_record().batch_id = batch_id
    return envelope.success(body)


@blueprint.patch("/v1/batches/<int:batch_id>")
def reschedule(batch_id: int) -> Response:
    """Answer 200 with the batch. Works also while the organization may not issue."""
    who = caller_without_query()
    send_at = read_json(read_reschedule)
    with transaction() as connection:
        schedule.reschedule(connection, batch_id, send_at, organization_id=who.organization.id, sandbox=who.sandbox)
        body = read_batch(connection, batch_id, who)
    current_record().batch_id = batch_id
    return envelope.success(body)
