"""`/v1/platform/organizations/{id}/keys`: the platform makes, lists and revokes an organization's keys."""

from flask import Blueprint, Response

from app import api_keys, organizations
from app.api.answers import envelope
from app.api.answers.platform import key_payload
from app.api.auth import platform_caller
from app.api.requests.body import read_json, refuse_fields
from app.api.requests.query import query, refuse_parameters
from app.pages import key_pages
from app.pages.queries import next_cursor, parse_page_request
from app.platform.keys import ORGANIZATIONS_READ, ORGANIZATIONS_WRITE
from app.platform.requests import read_new_key
from app.postgres.database import transaction

blueprint = Blueprint("platform_organization_keys", __name__)


@blueprint.post("/v1/platform/organizations/<int:organization_id>/keys")
def create(organization_id: int) -> Response:
    """Answer 201 with the key, which is shown once.

    Raises:
        InvalidRequest: with every fault of the body.
        NotFound: there is no such organization.
    """
    by = platform_caller(ORGANIZATIONS_WRITE).author
    refuse_parameters()
    new = read_json(read_new_key)
    with transaction(by=by) as connection:
        api_key_id, text = api_keys.create(connection, organization_id, **new)
    bounds = new.pop("bounds").payload()
    made = {"id": api_key_id, "key": text, "organization_id": organization_id, **new, **bounds}
    return envelope.success(made, status=201)


@blueprint.get("/v1/platform/organizations/<int:organization_id>/keys")
def list_keys(organization_id: int) -> Response:
    """Answer 200 with a page of the keys of both modes, newest first; each is shown by its first characters.

    Raises:
        NotFound: there is no such organization.
    """
    platform_caller(ORGANIZATIONS_READ)
    asked = parse_page_request("keys", query(), None, organization_id=organization_id)
    with transaction() as connection:
        organizations.get_whole(connection, organization_id)  # An empty list would hide a wrong id.
        page = key_pages.page(connection, asked.filters, start=asked.start, limit=asked.limit)
    shown = [key_payload(key) for key in page.rows]
    return envelope.success({"keys": shown, "next_cursor": next_cursor("keys", asked, page)})


@blueprint.delete("/v1/platform/organizations/<int:organization_id>/keys/<int:key_id>")
def revoke(organization_id: int, key_id: int) -> Response:
    """Answer 204, without a body, also when the key was revoked before.

    Raises:
        NotFound: the organization has no such key.
    """
    by = platform_caller(ORGANIZATIONS_WRITE).author
    refuse_parameters()
    refuse_fields()
    with transaction(by=by) as connection:
        api_keys.revoke(connection, key_id, organization_id=organization_id)
    return envelope.nothing()
