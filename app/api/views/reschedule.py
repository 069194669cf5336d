"""`PATCH /v1/batches/{id}`: move a scheduled batch to another time."""

from flask import Blueprint, Response

from app.api.answers import envelope
from app.api.auth import caller
from app.api.requests.body import read_json
from app.api.requests.query import refuse_parameters
from app.api.views.batches import read_batch
from app.batches import schedule
from app.batches.request import read_reschedule
from app.metrics.record import current_record
from app.postgres.database import transaction

blueprint = Blueprint("reschedule", __name__)


@blueprint.patch("/v1/batches/<int:batch_id>")
def reschedule(batch_id: int) -> Response:
    """Answer 200 with the batch. Works also while the organization may not issue.

    Raises:
        InvalidRequest: with every fault of the body.
        NotFound: the caller has no such batch.
        BatchConflict: it is no longer scheduled.
        NotKnown: somebody holds its organization; ask again.
    """
    who = caller()
    refuse_parameters()
    send_at = read_json(read_reschedule)
    with transaction() as connection:
        schedule.reschedule(connection, batch_id, send_at, organization_id=who.organization.id, sandbox=who.sandbox)
        body = read_batch(connection, batch_id, who)
    current_record().batch_id = batch_id
    return envelope.success(body)
