"""`/v1/platform/organizations/{id}/refills`: the platform puts points into a balance."""

from flask import Blueprint, Response

from app import organizations
from app.api.answers import envelope
from app.api.answers.platform import refill_payload
from app.api.auth import platform_caller
from app.api.requests.body import read_json
from app.api.requests.query import query, refuse_parameters
from app.api.requests.send_headers import idempotency_key
from app.ledger.refill import refill_once
from app.pages import refill_pages
from app.pages.queries import next_cursor, parse_page_request
from app.platform.keys import ORGANIZATIONS_READ, ORGANIZATIONS_WRITE
from app.platform.requests import read_new_refill
from app.postgres.database import transaction

blueprint = Blueprint("platform_refills", __name__)


@blueprint.post("/v1/platform/organizations/<int:organization_id>/refills")
def refill(organization_id: int) -> Response:
    """Answer 201 with the refill; 200 with the one that was booked with this reference before.

    Raises:
        InvalidRequest: with every fault of the body.
        NotFound: there is no such organization.
        IdempotencyKeyReused: the key belongs to a different refill.
        RefillConflict: the reference belongs to a different refill.
        RefillTooLarge: the balance would leave 64 bits.
    """
    by = platform_caller(ORGANIZATIONS_WRITE).author
    refuse_parameters()
    new, key = read_json(read_new_refill), idempotency_key()
    with transaction(by=by) as connection:
        booked = refill_once(connection, organization_id, **new, idempotency_key=key)
    status = 201 if booked.is_new or booked.is_replay else 200
    response = envelope.success(refill_payload(booked.refill), status=status)
    if booked.is_replay:
        response.headers["Idempotency-Replayed"] = "true"
    return response


@blueprint.get("/v1/platform/organizations/<int:organization_id>/refills")
def list_refills(organization_id: int) -> Response:
    """Answer 200 with a page of the refills in one mode, newest first.

    Raises:
        NotFound: there is no such organization.
    """
    platform_caller(ORGANIZATIONS_READ)
    asked = parse_page_request("refills", query(), None, organization_id=organization_id)
    with transaction() as connection:
        organizations.get_whole(connection, organization_id)  # An empty list would hide a wrong id.
        page = refill_pages.page(connection, asked.filters, start=asked.start, limit=asked.limit)
    shown = [refill_payload(refill) for refill in page.rows]
    return envelope.success({"refills": shown, "next_cursor": next_cursor("refills", asked, page)})
