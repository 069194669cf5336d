"""`POST /v1/transactions/{id}/extend`: hold a transaction until a later time."""

from flask import Blueprint, Response

from app.api.answers import envelope
from app.api.auth import caller
from app.api.requests.body import read_json
from app.api.requests.query import refuse_parameters
from app.batches import payloads
from app.ledger.extend import HELD_UNTIL
from app.ledger.extend import extend as extend_hold
from app.pages import transaction_pages
from app.postgres.database import transaction

blueprint = Blueprint("extend", __name__)


@blueprint.post("/v1/transactions/<int:transaction_id>/extend")
def extend(transaction_id: int) -> Response:
    """Answer 200 with the transaction. Works also while the organization may not issue.

    Raises:
        InvalidRequest: with every validation error of the body; or the time is not later.
        NotFound: the caller has no such transaction.
        CannotExtend: it is not held, has no end, or its end has come.
    """
    who = caller()
    refuse_parameters()
    held_until = read_json(HELD_UNTIL.read_alone)
    organization_id, sandbox = who.organization.id, who.sandbox
    with transaction() as connection:
        extend_hold(connection, transaction_id, held_until, organization_id=organization_id, sandbox=sandbox)
        row = transaction_pages.get(connection, transaction_id, organization_id=organization_id, sandbox=sandbox)
    return envelope.success(payloads.transaction_payloads([row])[0])
