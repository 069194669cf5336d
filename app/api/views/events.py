"""`GET /v1/events` and `GET /v1/platform/events`: the event log of a mode, and the platform's, oldest first."""

from functools import partial

from flask import Blueprint, Response

from app.api import event_log
from app.api.auth import caller, platform_caller
from app.api.requests.query import parse_events_request, query
from app.events.event_types import PLATFORM, PLATFORM_TYPES
from app.platform.keys import scopes_of_events
from app.scope import Scope

blueprint = Blueprint("events", __name__)


@blueprint.get("/v1/events")
def list_events() -> Response:
    """Answer 200 with the next events. With `wait`, answer once there is one, or with none when the time is over."""
    who = caller()
    log = event_log.Log(who.scope, key=str(who.api_key_id), authorize=caller)
    return event_log.answer(log, parse_events_request(query()))


@blueprint.get("/v1/platform/events")
def list_events_of_platform() -> Response:
    """Answer 200 with the next events, as `GET /v1/events` does."""
    who = platform_caller()
    asked = parse_events_request(query(), PLATFORM_TYPES)
    scopes = scopes_of_events(asked.types)
    who.require(*scopes)
    key = f"platform-{who.platform_key_id}"
    log = event_log.Log(Scope(PLATFORM, sandbox=False), key=key, authorize=partial(platform_caller, *scopes))
    return event_log.answer(log, asked)
