"""`GET /v1/organization`: the caller's organization, with what is scheduled in the key's mode, and the limits."""

from flask import Blueprint, Response

from app.api.answers import envelope
from app.api.auth import caller_without_query
from app.batches import schedule
from app.organizations import in_mode
from app.postgres.database import single_statement
from app.settings import settings

blueprint = Blueprint("organization", __name__)


@blueprint.get("/v1/organization")
def show_organization() -> Response:
    who = caller_without_query()
    with single_statement() as connection:
        scheduled = schedule.scheduled_of(connection, who.organization.id, sandbox=who.sandbox)
    return envelope.success(
        in_mode.payload(who.organization),
        scheduled=schedule.schedules.payload(scheduled),
        limits=envelope.limits_payload(settings()),
    )
