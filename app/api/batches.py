"""`GET /v1/batches/{id}`: a batch as it is now, also while it is still queued."""

from flask import Blueprint, Response

from app import batches
from app.api import envelope
from app.api.auth import caller
from app.database import transaction
from app.errors import NotFound
from app.settings import INT64_MAX

blueprint = Blueprint("batches", __name__)


@blueprint.get("/v1/batches/<int:batch_id>")
def show_batch(batch_id: int) -> Response:
    """Answer 200 with the batch; another organization's, or another mode's, is a 404 like one that is not there."""
    who = caller()
    with transaction() as connection:
        batch = None
        if batch_id <= INT64_MAX:
            batch = batches.find(connection, batch_id, organization_id=who.organization.id, sandbox=who.sandbox)
        if batch is None:
            raise NotFound("batch", batch_id)
        transactions = batches.transactions_of(connection, batch.id)
    return envelope.success(envelope.batch_body(batch, transactions))
