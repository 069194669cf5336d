"""`POST /v1/points/verify`: whether an issue is possible. Read-only, takes no lock."""

from flask import Blueprint, Response

from app.api.answers import envelope
from app.api.auth import caller_without_query
from app.api.requests.body import read_json
from app.api.requests.send_headers import end_connection, rehearsal
from app.api_keys import Caller
from app.batches import key_limits
from app.batches.errors import KeyLimit
from app.batches.request import IssueRequest, read_issue_request
from app.batches.verify import RATE_LIMITED, SILENT, UNAVAILABLE, as_rehearsed, refusal_of
from app.batches.verify import verify as verdict_of
from app.postgres.database import single_statement

blueprint = Blueprint("verify", __name__)


@blueprint.post("/v1/points/verify")
def verify() -> Response:
    """Answer 200 with the verdict, even if it is a refusal."""
    who = caller_without_query()
    request, named = read_json(read_issue_request), rehearsal()
    if named in (RATE_LIMITED, UNAVAILABLE) and (refusal := refusal_of((named,))) is not None:
        raise refusal
    if named == SILENT:
        end_connection()
    organization = as_rehearsed(who.organization, request, named) if who.sandbox else who.organization
    verdict = verdict_of(organization, request, _limit_of_key(who, request))
    return envelope.success(envelope.verdict_payload(verdict), **envelope.verdict_additions(verdict))


def _limit_of_key(who: Caller, request: IssueRequest) -> KeyLimit | None:
    if who.bounds.daily_limit is None:  # No connection is taken for the others.
        return key_limits.refusal(who.bounds, request.required)
    with single_statement() as connection:
        return key_limits.refusal_now(connection, who, request.required)
