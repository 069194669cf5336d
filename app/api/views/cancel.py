"""`POST /v1/batches/{id}/cancel`: cancel a batch before it is issued."""

from flask import Blueprint, Response

from app.api.answers import envelope
from app.api.auth import caller
from app.api.requests.body import refuse_fields
from app.api.requests.query import refuse_parameters
from app.api.views.batches import read_batch
from app.batches import schedule
from app.metrics.record import current_record
from app.postgres.database import transaction

blueprint = Blueprint("cancel", __name__)


@blueprint.post("/v1/batches/<int:batch_id>/cancel")
def cancel(batch_id: int) -> Response:
    """Answer 200 with the cancelled batch. Works on a cancelled batch too, and if the organization may not issue.

    Raises:
        NotFound: the caller has no such batch.
        BatchConflict: it is issued or refused.
        NotKnown: somebody holds its organization; ask again.
    """
    who = caller()
    refuse_parameters()
    refuse_fields()
    with transaction() as connection:
        schedule.cancel(connection, batch_id, organization_id=who.organization.id, sandbox=who.sandbox)
        body = read_batch(connection, batch_id, who)
    current_record().batch_id = batch_id
    return envelope.success(body)
