"""`GET /v1/organization`: the caller's own organization, with the balance of the key's mode."""

from flask import Blueprint, Response

from app.api.call import envelope
from app.api.call.auth import caller
from app.api.call.queries import refuse_parameters

blueprint = Blueprint("organization", __name__)


@blueprint.get("/v1/organization")
def show_organization() -> Response:
    who = caller()
    refuse_parameters()
    return envelope.success(envelope.organization_body(who.organization))
