"""`GET /v1/platform/events`: the event log of the platform, oldest first."""

from functools import partial

from flask import Blueprint, Response

from app.api import event_log
from app.api.auth import platform_caller
from app.api.requests.query import parse_events_request, query
from app.events.log import PLATFORM, PLATFORM_TYPES
from app.platform.keys import scopes_of_events

blueprint = Blueprint("platform_events", __name__)


@blueprint.get("/v1/platform/events")
def list_events() -> Response:
    """Answer 200 with the next events, as `GET /v1/events` does."""
    who = platform_caller()
    asked = parse_events_request(query(), PLATFORM_TYPES)
    scopes = scopes_of_events(asked.types)
    who.require(*scopes)
    key = f"platform-{who.platform_key_id}"
    log = event_log.Log(PLATFORM, sandbox=False, key=key, authorize=partial(platform_caller, *scopes))
    return event_log.answer(log, asked)
