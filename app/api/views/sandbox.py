"""`POST /v1/sandbox/reset`, `/clock` and `/users`: the sandbox itself, for development keys."""

from flask import Blueprint, Response

from app import organizations
from app.api.answers import envelope
from app.api.auth import caller_without_query
from app.api.requests.body import read_json, refuse_fields
from app.api_keys import Caller
from app.errors import PointsError
from app.ledger import sandbox
from app.ledger.claim import NOTHING, claims
from app.ledger.refill import reset_sandbox
from app.postgres.database import transaction
from app.values.timestamps import timestamp

blueprint = Blueprint("sandbox", __name__)


class DevelopmentKeyRequired(PointsError):
    """A live key was used for a call that only the sandbox has."""

    status = 403
    field = "authorization"
    says = "Only a development key may change the sandbox, but this is a live key."


@blueprint.post("/v1/sandbox/reset")
def reset() -> Response:
    """Answer 200 with the organization and its new sandbox balance. Works also while the organization may not issue."""
    who = caller_without_query()
    refuse_fields()
    _require_sandbox(who)
    with transaction() as connection:
        reset_sandbox(connection, who.organization.id)
        organization = organizations.get(connection, who.organization.id, sandbox=True)
    return envelope.success(organizations.in_mode.payload(organization))


@blueprint.post("/v1/sandbox/clock")
def set_clock() -> Response:
    """Answer 200 with the time of the sandbox."""
    who = _caller_in_sandbox()
    now = read_json(sandbox.NOW.read_alone)
    with transaction() as connection:
        sandbox.set_clock(connection, who.organization.id, now)
    return envelope.success({"now": timestamp(now)})


@blueprint.post("/v1/sandbox/users")
def register() -> Response:
    """Answer 201 with the new user; 200 if it is registered already, with the same names."""
    who = _caller_in_sandbox()
    new = read_json(sandbox.read_user)
    with transaction() as connection:
        user, claimed = sandbox.register(connection, who.organization.id, new)
    return envelope.success(
        sandbox.users.payload(user),
        status=200 if claimed is None else 201,
        claimed=claims.payload(claimed or NOTHING),
    )


def _caller_in_sandbox() -> Caller:
    """Find the caller of a call without parameters.

    Raises:
        InvalidKey: as by `caller`.
        DevelopmentKeyRequired: the key is a live key.
    """
    who = caller_without_query()
    _require_sandbox(who)
    return who


def _require_sandbox(who: Caller) -> None:
    if not who.sandbox:
        raise DevelopmentKeyRequired
