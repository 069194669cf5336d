"""`/v1/platform/organizations`: the platform makes and changes organizations, and refills them."""

from collections.abc import Mapping
from functools import partial
from typing import Any

from flask import Response
from sqlalchemy import Connection

from app import organizations
from app.api.calls import Answer, call
from app.api.envelope import success
from app.api.listing import page_answer
from app.api.refusals import BAD_LIST_QUERY, NO_ORGANIZATION, refusal
from app.errors import CorrectionTooLarge, OrganizationConflict, RefillConflict, RefillTooLarge
from app.ledger.refill import open_organization, refill_once
from app.organizations import refills, whole
from app.pages import lists
from app.platform.keys import ORGANIZATIONS_READ, ORGANIZATIONS_WRITE, REFILLS_WRITE, PlatformCaller
from app.platform.requests import (
    CHANGEABLE,
    CHANGED_ORGANIZATION,
    NEW_ORGANIZATION,
    NEW_REFILL,
    read_new_organization,
    read_new_refill,
)
from app.postgres.database import single_statement, transaction

_call = partial(call, group="Platform")
_OTHER = refusal(
    "OtherOrganization",
    "The `external_id` is that of another organization. Nothing was written.",
    OrganizationConflict(),
)


@_call(
    "POST /v1/platform/organizations",
    "Make an organization",
    scopes=(ORGANIZATIONS_WRITE,),
    body=NEW_ORGANIZATION,
    read=read_new_organization,
    sent={"new_organization": {"name": "Acme", "external_id": "shop-12", "balance": 1_000, "held_days": 90}},
    answers=[
        Answer(
            about="An organization with this `external_id` and name was made before.",
            data=whole.model,
            examples={"known_organization": {}},
        ),
        Answer(
            status=201,
            about="The organization.",
            data=whole.model,
            examples={"made_organization": {}},
            headers=["Location"],
            links={"organization": ("showAnyOrganization", "$response.body#/data/id")},
        ),
    ],
    refuses=[_OTHER],
    makes_once=True,
)
def create_organization(who: PlatformCaller, connection: Connection, new: Mapping[str, Any]) -> Response:
    """Its opening balances are refills. Send an `external_id` or an `Idempotency-Key`: then you can safely repeat a
    call whose answer was lost.
    """
    organization, is_new = open_organization(connection, **new)
    response = success(whole.payload(organization), status=201 if is_new else 200)
    if is_new:
        response.headers["Location"] = f"/v1/platform/organizations/{organization.id}"
    return response


@_call(
    "GET /v1/platform/organizations",
    "All organizations, page by page",
    scopes=(ORGANIZATIONS_READ,),
    query="organizations",
    answers=Answer(about="A page of the list.", data=whole.page(), examples={"organizations": {}}),
    refuses=[BAD_LIST_QUERY],
)
def list_organizations(who: PlatformCaller) -> Response:
    """Newest first. `next_cursor` leads to the next page and is null at the end."""
    return page_answer("organizations", None, lists.organizations, whole.payload)


@_call(
    "GET /v1/platform/organizations/{id}",
    "One organization, in both modes",
    scopes=(ORGANIZATIONS_READ,),
    name="showAnyOrganization",
    answers=Answer(about="The organization.", data=whole.model, examples={"any_organization": {}}),
    refuses=[NO_ORGANIZATION],
)
def show_organization(who: PlatformCaller, organization_id: int) -> dict[str, Any]:
    """With both balances, its options, and whether it may issue."""
    with single_statement() as connection:
        return whole.payload(organizations.get_whole(connection, organization_id))


@_call(
    "PATCH /v1/platform/organizations/{id}",
    "Change an organization",
    scopes=(ORGANIZATIONS_WRITE,),
    body=CHANGED_ORGANIZATION,
    read=CHANGEABLE.read_sent,
    sent={"changed_organization": {"is_suspended": True}},
    answers=Answer(
        about="The organization.",
        data=whole.model,
        examples={"organization_suspended": {"is_suspended": True}},
    ),
    refuses=[NO_ORGANIZATION, _OTHER],
)
def change_organization(who: PlatformCaller, organization_id: int, changes: Mapping[str, Any]) -> dict[str, Any]:
    """Changes the fields that are sent: its name, its options, and whether it may issue. What runs for it ends
    first.
    """
    with transaction(by=who.author) as connection:
        return whole.payload(organizations.change(connection, organization_id, changes))


@_call(
    "POST /v1/platform/organizations/{id}/refills",
    "Put points into a balance",
    scopes=(REFILLS_WRITE,),
    body=NEW_REFILL,
    read=read_new_refill,
    sent={
        "new_refill": {"amount": 1_000, "reference": "invoice-7"},
        "correction": {"amount": -100, "reference": "invoice-7-corrected"},
    },
    answers=[
        Answer(
            about="A refill with this `reference` was booked before.",
            data=refills.model,
            examples={"known_refill": {}},
        ),
        Answer(
            status=201,
            about="The refill.",
            data=refills.model,
            examples={"refilled": {}},
        ),
    ],
    refuses=[
        NO_ORGANIZATION,
        refusal(
            "OtherRefill",
            "The `reference` is that of a refill of another amount or mode; or the balance would fall below 0 or exceed"
            " 64 bits. Nothing was booked.",
            *(RefillConflict("invoice-7", 10, "live"), CorrectionTooLarge, RefillTooLarge),
        ),
    ],
    makes_once=True,
)
def refill(who: PlatformCaller, connection: Connection, organization_id: int, new: Mapping[str, Any]) -> Response:
    """Adds points to the live or the sandbox balance. An amount below 0 corrects a refill, and is listed and summed as
    one. Send an `Idempotency-Key`, a `reference` or both: then you can safely repeat a call whose answer was lost.
    """
    booked = refill_once(connection, organization_id, **new)
    return success(refills.payload(booked.refill), status=201 if booked.is_new else 200)


@_call(
    "GET /v1/platform/organizations/{id}/refills",
    "The refills of an organization, page by page",
    scopes=(ORGANIZATIONS_READ,),
    query="refills",
    answers=Answer(about="A page of the list.", data=refills.page(), examples={"refills": {}}),
    refuses=[NO_ORGANIZATION, BAD_LIST_QUERY],
)
def list_refills(who: PlatformCaller, organization_id: int) -> Response:
    """Newest first, of the live balance, or of the sandbox's with `sandbox=true`. A reset of the sandbox is a refill
    too, and may take points away.
    """
    require = partial(organizations.get_whole, organization_id=organization_id)
    rows = lists.refills
    return page_answer("refills", None, rows, refills.payload, require=require, organization_id=organization_id)
