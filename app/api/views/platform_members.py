"""`/v1/platform/organizations/{id}/members`: the platform makes members, each with a link to choose a password."""

from flask import Blueprint, Response, request

from app.api.answers import envelope
from app.api.auth import platform_caller
from app.api.requests.body import read_json
from app.api.requests.query import refuse_parameters
from app.members import links
from app.members.request import read_new_member
from app.platform.keys import ORGANIZATIONS_WRITE
from app.postgres.database import transaction
from app.values.schemes import is_https

blueprint = Blueprint("platform_members", __name__)


@blueprint.post("/v1/platform/organizations/<int:organization_id>/members")
def create(organization_id: int) -> Response:
    """Answer 201 with the member and the link, good once and for 24 hours, which is shown once.

    Raises:
        InvalidRequest: with every fault of the body.
        NotFound: there is no such organization.
        MemberConflict: a member has the address.
    """
    by = platform_caller(ORGANIZATIONS_WRITE).author
    refuse_parameters()
    new = read_json(read_new_member)
    with transaction(by=by) as connection:
        member_id, token = links.add(connection, organization_id, **new, by=None)
    origin = f"{'https' if is_https(request.environ) else 'http'}://{request.host}"
    return envelope.success({"id": member_id, **new, "link": links.link_to(origin, token)}, status=201)
