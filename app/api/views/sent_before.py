"""`POST /v1/points/sent-before`: who of a send's recipients was sent the same lately. Read-only."""

from flask import Blueprint, Response

from app.api.answers import envelope
from app.api.auth import caller_without_query
from app.api.requests.body import read_json
from app.api.requests.send_headers import idempotency_key
from app.batches import sent_lately
from app.batches.request import read_issue_request
from app.postgres.database import transaction

blueprint = Blueprint("sent_before", __name__)


@blueprint.post("/v1/points/sent-before")
def sent_before() -> Response:
    """Answer 200, with zeros if nobody was. The batch that has the call's idempotency key already does not count."""
    who = caller_without_query()
    key = idempotency_key()
    request = read_json(read_issue_request)
    with transaction() as connection:
        found = sent_lately.of_request(connection, request, who.organization.id, sandbox=who.sandbox, but_key=key)
    return envelope.success(envelope.sent_lately_payload(found))
