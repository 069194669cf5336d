"""`GET /v1/events`: the event log of the organization in the key's mode, oldest first."""

from flask import Blueprint, Response

from app.api import event_log
from app.api.auth import caller
from app.api.requests.query import parse_events_request, query

blueprint = Blueprint("events", __name__)


@blueprint.get("/v1/events")
def list_events() -> Response:
    """Answer 200 with the next events. With `wait`, answer once there is one, or with none when the time is over."""
    who = caller()
    log = event_log.Log(who.organization.id, sandbox=who.sandbox, key=str(who.api_key_id), authorize=caller)
    return event_log.answer(log, parse_events_request(query()))
