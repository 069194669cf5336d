"""`POST /v1/points/verify`: whether an issue is possible. Read-only, takes no lock."""

from flask import Blueprint, Response

from app.api.answers import envelope
from app.api.auth import caller
from app.api.requests.body import read_json
from app.api.requests.query import refuse_parameters
from app.api.requests.rehearsal import end_connection, rehearsal
from app.batches import verify as ledger
from app.batches.rehearsing import RATE_LIMITED, SILENT, UNAVAILABLE, as_rehearsed, refusal_of
from app.batches.request import read_issue_request

blueprint = Blueprint("verify", __name__)


@blueprint.post("/v1/points/verify")
def verify() -> Response:
    """Answer 200 with the verdict, even if it is a refusal.

    Raises:
        RateLimited, OutOfReach: this is rehearsed.
    """
    who = caller()
    refuse_parameters()
    request, named = read_json(read_issue_request), rehearsal()
    if named in (RATE_LIMITED, UNAVAILABLE) and (refusal := refusal_of((named,))) is not None:
        raise refusal
    if named == SILENT:
        end_connection()
    organization = as_rehearsed(who.organization, request, named) if who.sandbox else who.organization
    verdict = ledger.verify(organization, request)
    return envelope.success(envelope.verdict_payload(verdict), **envelope.verdict_additions(verdict))
