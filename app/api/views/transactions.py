"""`GET /v1/transactions` and `GET /v1/transactions/{id}`: transactions as they are now."""

from flask import Blueprint, Response

from app.api.answers import envelope
from app.api.auth import caller
from app.api.requests.query import query, refuse_parameters
from app.batches import payloads
from app.pages import transaction_pages
from app.pages.queries import next_cursor, parse_page_request
from app.postgres.database import transaction

blueprint = Blueprint("transactions", __name__)


@blueprint.get("/v1/transactions")
def list_transactions() -> Response:
    """Answer 200 with a page of the organization's transactions in the key's mode, newest first."""
    who = caller()
    asked = parse_page_request("transactions", query(), who)
    with transaction() as connection:
        page = transaction_pages.page(connection, asked.filters, start=asked.start, limit=asked.limit)
    shown = payloads.transaction_payloads(page.rows)
    return envelope.success({"transactions": shown, "next_cursor": next_cursor("transactions", asked, page)})


@blueprint.get("/v1/transactions/<int:transaction_id>")
def show_transaction(transaction_id: int) -> Response:
    """Answer 200 with the transaction; 404 also for a transaction of another organization or mode."""
    who = caller()
    refuse_parameters()
    with transaction() as connection:
        row = transaction_pages.get(
            connection, transaction_id, organization_id=who.organization.id, sandbox=who.sandbox
        )
    return envelope.success(payloads.transaction_payloads([row])[0])
