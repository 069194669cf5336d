"""`POST /v1/points/verify`: whether an issue is possible. Read-only, takes no lock."""

from flask import Blueprint, Response

from app.api.call import envelope
from app.api.call.auth import caller
from app.api.call.body import json_bytes
from app.api.call.queries import refuse_parameters
from app.api.call.schemas import parse_issue_request
from app.ledger import verify as ledger
from app.settings import settings

blueprint = Blueprint("verify", __name__)


@blueprint.post("/v1/points/verify")
def verify() -> Response:
    """Answer 200 with the verdict, even if it is a refusal."""
    organization = caller().organization
    refuse_parameters()
    request = parse_issue_request(json_bytes(), settings())
    verdict = ledger.verify(organization, request)
    return envelope.success(envelope.verdict_body(verdict), **envelope.verdict_additions(verdict))
