"""`GET /v1/webhooks/{id}/deliveries`: the attempts of the last 30 days, newest first."""

from flask import Blueprint, Response

from app.api.answers import envelope
from app.api.answers.webhooks import delivery_payload
from app.api.auth import caller
from app.api.requests.query import query
from app.pages import delivery_pages
from app.pages.queries import next_cursor, parse_page_request
from app.postgres.database import transaction
from app.webhooks import webhooks

blueprint = Blueprint("webhook_deliveries", __name__)


@blueprint.get("/v1/webhooks/<int:webhook_id>/deliveries")
def list_deliveries(webhook_id: int) -> Response:
    """Answer 200 with a page of the attempts.

    Raises:
        InvalidRequest: with every fault of the query.
        NotFound: the caller has no such webhook.
    """
    who = caller()
    asked = parse_page_request("deliveries", query(), who, webhook_id=webhook_id)
    with transaction() as connection:
        webhooks.get(connection, webhook_id, organization_id=who.organization.id, sandbox=who.sandbox)
    with transaction() as connection:
        page = delivery_pages.page(connection, asked.filters, start=asked.start, limit=asked.limit)
    shown = [delivery_payload(delivery) for delivery in page.rows]
    return envelope.success({"deliveries": shown, "next_cursor": next_cursor("deliveries", asked, page)})
