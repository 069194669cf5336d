"""`POST /v1/sandbox/reset`: the sandbox balance back at its start value, for a development key."""

from flask import Blueprint, Response

from app import organizations
from app.api.call import envelope
from app.api.call.auth import caller
from app.api.call.body import refuse_too_large
from app.api.call.queries import refuse_parameters
from app.errors import DevelopmentKeyRequired
from app.ledger.refill import reset_sandbox
from app.postgres.database import transaction

blueprint = Blueprint("sandbox", __name__)


@blueprint.post("/v1/sandbox/reset")
def reset() -> Response:
    """Answer 200 with the organization as the sandbox then sees it, also when it may not issue: nothing is issued.

    Raises:
        DevelopmentKeyRequired: the key is a live one.
    """
    refuse_too_large()  # It is not read, but the limit is one for all.
    who = caller()
    refuse_parameters()
    if not who.sandbox:
        raise DevelopmentKeyRequired
    with transaction() as connection:
        reset_sandbox(connection, who.organization.id)
        organization = organizations.find(connection, who.organization.id, sandbox=True)
    return envelope.success(envelope.organization_body(organization))
