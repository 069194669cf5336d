"""`POST /v1/batches/{id}/cancel`: cancel a batch before it is issued."""

from flask import Blueprint, Response

from app.api.call import envelope
from app.api.call.auth import caller
from app.api.call.body import refuse_too_large
from app.api.call.queries import refuse_parameters
from app.api.call.record import current_record
from app.api.views.batches import read_batch
from app.ledger import later
from app.postgres.database import transaction

blueprint = Blueprint("cancel", __name__)


@blueprint.post("/v1/batches/<int:batch_id>/cancel")
def cancel(batch_id: int) -> Response:
    """Answer 200 with the cancelled batch. Works on a cancelled batch too, and if the organization may not issue.

    Raises:
        NotFound: the caller has no such batch.
        BatchConflict: it is issued or refused.
    """
    refuse_too_large()  # The body is not read, but its limit applies to every call.
    who = caller()
    refuse_parameters()
    with transaction() as connection:
        later.cancel(connection, batch_id, organization_id=who.organization.id, sandbox=who.sandbox)
        body = read_batch(connection, batch_id, who)
    current_record().batch_id = batch_id
    return envelope.success(body)
