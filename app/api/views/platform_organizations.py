"""`/v1/platform/organizations`: the platform makes and changes organizations, their refills, keys and members."""

from functools import partial

from flask import Blueprint, Response, request

from app import api_keys, organizations
from app.api.answers import envelope
from app.api.auth import platform_caller, platform_caller_without_query
from app.api.listing import page_answer
from app.api.requests.body import read_json, refuse_fields
from app.api.requests.send_headers import idempotency_key
from app.ledger.refill import open_organization, refill_once
from app.members import links
from app.members.links import read_new_member
from app.organizations import refills, whole
from app.pages import lists
from app.platform.keys import ORGANIZATIONS_READ, ORGANIZATIONS_WRITE
from app.platform.requests import CHANGEABLE, NEW_REFILL, read_new_key, read_new_organization
from app.postgres.database import transaction
from app.values.headers import is_https

blueprint = Blueprint("platform_organizations", __name__)


@blueprint.post("/v1/platform/organizations")
def create() -> Response:
    """Answer 201 with the organization. Its opening balances are refills."""
    by = platform_caller_without_query(ORGANIZATIONS_WRITE).author
    new = read_json(read_new_organization)
    with transaction(by=by) as connection:
        organization_id = open_organization(connection, **new)
        made = organizations.get_whole(connection, organization_id)
    response = envelope.success(whole.payload(made), status=201)
    response.headers["Location"] = f"/v1/platform/organizations/{organization_id}"
    return response


@blueprint.get("/v1/platform/organizations")
def list_organizations() -> Response:
    """Answer 200 with a page of the organizations, newest first."""
    platform_caller(ORGANIZATIONS_READ)
    return page_answer("organizations", None, lists.organizations, whole.payload)


@blueprint.get("/v1/platform/organizations/<int:organization_id>")
def show(organization_id: int) -> Response:
    """Answer 200 with the organization."""
    platform_caller_without_query(ORGANIZATIONS_READ)
    with transaction() as connection:
        organization = organizations.get_whole(connection, organization_id)
    return envelope.success(whole.payload(organization))


@blueprint.patch("/v1/platform/organizations/<int:organization_id>")
def change(organization_id: int) -> Response:
    """Answer 200 with the changed organization. This waits for a running drain."""
    by = platform_caller_without_query(ORGANIZATIONS_WRITE).author
    changes = read_json(CHANGEABLE.read_sent)
    with transaction(by=by) as connection:
        changed = organizations.change(connection, organization_id, changes)
    return envelope.success(whole.payload(changed))


@blueprint.post("/v1/platform/organizations/<int:organization_id>/refills")
def refill(organization_id: int) -> Response:
    """Answer 201 with the refill; 200 with the one that was booked with this reference before."""
    by = platform_caller_without_query(ORGANIZATIONS_WRITE).author
    new, key = read_json(NEW_REFILL.read), idempotency_key()
    with transaction(by=by) as connection:
        booked = refill_once(connection, organization_id, **new, idempotency_key=key)
    status = 201 if booked.is_new or booked.is_replay else 200
    response = envelope.success(refills.payload(booked.refill), status=status)
    if booked.is_replay:
        response.headers["Idempotency-Replayed"] = "true"
    return response


@blueprint.get("/v1/platform/organizations/<int:organization_id>/refills")
def list_refills(organization_id: int) -> Response:
    """Answer 200 with a page of the refills in one mode, newest first."""
    platform_caller(ORGANIZATIONS_READ)
    require = partial(organizations.get_whole, organization_id=organization_id)
    rows = lists.refills
    return page_answer("refills", None, rows, refills.payload, require=require, organization_id=organization_id)


@blueprint.post("/v1/platform/organizations/<int:organization_id>/keys")
def create_key(organization_id: int) -> Response:
    """Answer 201 with the key, which is shown once."""
    by = platform_caller_without_query(ORGANIZATIONS_WRITE).author
    new = read_json(read_new_key)
    with transaction(by=by) as connection:
        api_key_id, text = api_keys.create(connection, organization_id, **new)
    made = api_keys.CreatedKey(api_key_id, text, organization_id, new["name"], new["sandbox"], *new["bounds"])
    return envelope.success(api_keys.new_keys.payload(made), status=201)


@blueprint.get("/v1/platform/organizations/<int:organization_id>/keys")
def list_keys(organization_id: int) -> Response:
    """Answer 200 with a page of the keys of both modes, newest first; each is shown by its first characters."""
    platform_caller(ORGANIZATIONS_READ)
    require = partial(organizations.get_whole, organization_id=organization_id)
    rows = lists.keys
    return page_answer("keys", None, rows, api_keys.keys.payload, require=require, organization_id=organization_id)


@blueprint.delete("/v1/platform/organizations/<int:organization_id>/keys/<int:key_id>")
def revoke_key(organization_id: int, key_id: int) -> Response:
    """Answer 204, without a body, also when the key was revoked before."""
    by = platform_caller_without_query(ORGANIZATIONS_WRITE).author
    refuse_fields()
    with transaction(by=by) as connection:
        api_keys.revoke(connection, key_id, organization_id=organization_id)
    return envelope.nothing()


@blueprint.post("/v1/platform/organizations/<int:organization_id>/members")
def create_member(organization_id: int) -> Response:
    """Answer 201 with the member and the link, good once and for 24 hours, which is shown once."""
    by = platform_caller_without_query(ORGANIZATIONS_WRITE).author
    new = read_json(read_new_member)
    with transaction(by=by) as connection:
        member_id, token = links.add(connection, organization_id, **new, by=None)
    origin = f"{'https' if is_https(request.environ) else 'http'}://{request.host}"
    return envelope.success({"id": member_id, **new, "link": links.link_to(origin, token)}, status=201)
