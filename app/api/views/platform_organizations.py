"""`/v1/platform/organizations`: the platform makes, finds and changes organizations."""

from flask import Blueprint, Response

from app import organizations
from app.api.answers import envelope
from app.api.answers.platform import organization_payload
from app.api.auth import platform_caller
from app.api.requests.body import read_json
from app.api.requests.query import query, refuse_parameters
from app.ledger.refill import open_organization
from app.pages import organization_pages
from app.pages.queries import next_cursor, parse_page_request
from app.platform.keys import ORGANIZATIONS_READ, ORGANIZATIONS_WRITE
from app.platform.requests import read_changes_of_organization, read_new_organization
from app.postgres.database import transaction

blueprint = Blueprint("platform_organizations", __name__)


@blueprint.post("/v1/platform/organizations")
def create() -> Response:
    """Answer 201 with the organization. Its opening balances are refills.

    Raises:
        InvalidRequest: with every fault of the body.
    """
    by = platform_caller(ORGANIZATIONS_WRITE).author
    refuse_parameters()
    new = read_json(read_new_organization)
    with transaction(by=by) as connection:
        organization_id = open_organization(connection, **new)
        made = organizations.get_whole(connection, organization_id)
    response = envelope.success(organization_payload(made), status=201)
    response.headers["Location"] = f"/v1/platform/organizations/{organization_id}"
    return response


@blueprint.get("/v1/platform/organizations")
def list_organizations() -> Response:
    """Answer 200 with a page of the organizations, newest first."""
    platform_caller(ORGANIZATIONS_READ)
    asked = parse_page_request("organizations", query(), None)
    with transaction() as connection:
        page = organization_pages.page(connection, asked.filters, start=asked.start, limit=asked.limit)
    shown = [organization_payload(organization) for organization in page.rows]
    return envelope.success({"organizations": shown, "next_cursor": next_cursor("organizations", asked, page)})


@blueprint.get("/v1/platform/organizations/<int:organization_id>")
def show(organization_id: int) -> Response:
    """Answer 200 with the organization.

    Raises:
        NotFound: there is no such organization.
    """
    platform_caller(ORGANIZATIONS_READ)
    refuse_parameters()
    with transaction() as connection:
        organization = organizations.get_whole(connection, organization_id)
    return envelope.success(organization_payload(organization))


@blueprint.patch("/v1/platform/organizations/<int:organization_id>")
def change(organization_id: int) -> Response:
    """Answer 200 with the changed organization. This waits for a running drain.

    Raises:
        InvalidRequest: with every fault of the body.
        NotFound: there is no such organization.
    """
    by = platform_caller(ORGANIZATIONS_WRITE).author
    refuse_parameters()
    changes = read_json(read_changes_of_organization)
    with transaction(by=by) as connection:
        changed = organizations.change(connection, organization_id, changes)
    return envelope.success(organization_payload(changed))
