"""`/v1/platform/organizations`: the platform makes and changes organizations, and refills them."""

from collections.abc import Mapping
from functools import partial
from typing import Any

from flask import Response

from app import organizations
from app.api.calls import Answer, call
from app.api.envelope import success
from app.api.listing import page_answer
from app.api.refusals import BAD_LIST_QUERY, KEY_REUSED, NO_ORGANIZATION, refusal
from app.api.requests.send_headers import idempotency_key
from app.errors import RefillConflict, RefillTooLarge
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
)
from app.postgres.database import single_statement, transaction

_call = partial(call, group="Platform")


@_call(
    "POST /v1/platform/organizations",
    "Make an organization",
    scopes=(ORGANIZATIONS_WRITE,),
    body=NEW_ORGANIZATION,
    read=read_new_organization,
    sent={"new_organization": {"name": "Acme", "balance": 1_000, "held_days": 90}},
    answers=Answer(
        status=201,
        about="The organization.",
        data=whole.model,
        examples={"made_organization": {}},
        headers=["Location"],
        links={"organization": ("showAnyOrganization", "$response.body#/data/id")},
    ),
)
def create_organization(who: PlatformCaller, new: Mapping[str, Any]) -> Response:
    """Its opening balances are refills."""
    with transaction(by=who.author) as connection:
        organization_id = open_organization(connection, **new)
        organization = organizations.get_whole(connection, organization_id)
    response = success(whole.payload(organization), status=201)
    response.headers["Location"] = f"/v1/platform/organizations/{organization_id}"
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
    refuses=[NO_ORGANIZATION],
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
    headers=["Idempotency-Key"],
    body=NEW_REFILL,
    sent={"new_refill": {"amount": 1_000, "reference": "invoice-7"}},
    answers=[
        Answer(
            about="A refill with this `reference` was booked before.",
            data=refills.model,
            examples={"known_refill": {}},
        ),
        Answer(
            status=201,
            about="The refill. If the `Idempotency-Key` names one booked before: that refill.",
            data=refills.model,
            headers=["Idempotency-Replayed"],
            examples={"refilled": {}},
        ),
    ],
    refuses=[
        NO_ORGANIZATION,
        refusal(
            "OtherRefill",
            "The `reference` is that of a refill of another amount or mode; or the balance would exceed 64 bits."
            " Nothing was booked.",
            *(RefillConflict("invoice-7", 10, "live"), RefillTooLarge),
        ),
        KEY_REUSED,
    ],
)
def refill(who: PlatformCaller, organization_id: int, **new: Any) -> Response:
    """Adds points to the live or the sandbox balance. Send an `Idempotency-Key`, a `reference` or both: then you can
    safely repeat a call whose answer was lost.
    """
    key = idempotency_key()
    with transaction(by=who.author) as connection:
        booked = refill_once(connection, organization_id, **new, idempotency_key=key)
    status = 201 if booked.is_new or booked.is_replay else 200
    response = success(refills.payload(booked.refill), status=status)
    if booked.is_replay:
        response.headers["Idempotency-Replayed"] = "true"
    return response


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
    too, which may take points away.
    """
    require = partial(organizations.get_whole, organization_id=organization_id)
    rows = lists.refills
    return page_answer("refills", None, rows, refills.payload, require=require, organization_id=organization_id)
