"""`POST /v1/sandbox/reset`: set the sandbox balance back to its start value; for development keys."""

from flask import Blueprint, Response

from app import organizations
from app.api.answers import envelope
from app.api.auth import caller
from app.api.requests.body import refuse_fields
from app.api.requests.query import refuse_parameters
from app.errors import DevelopmentKeyRequired
from app.ledger.refill import reset_sandbox
from app.postgres.database import transaction

blueprint = Blueprint("sandbox", __name__)


@blueprint.post("/v1/sandbox/reset")
def reset() -> Response:
    """Answer 200 with the organization and its new sandbox balance. Works also while the organization may not issue.

    Raises:
        DevelopmentKeyRequired: the key is a live key.
    """
    who = caller()
    refuse_parameters()
    refuse_fields()
    if not who.sandbox:
        raise DevelopmentKeyRequired
    with transaction() as connection:
        reset_sandbox(connection, who.organization.id)
        organization = organizations.get(connection, who.organization.id, sandbox=True)
    return envelope.success(organization.payload())
