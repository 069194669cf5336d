"""`/v1/transactions`: transactions as they are now, and holding one for longer."""

from flask import Blueprint, Response

from app.api.answers import envelope
from app.api.auth import caller, caller_without_query
from app.api.requests.body import read_json
from app.api.requests.query import query
from app.batches import payloads
from app.ledger.returns import HELD_UNTIL
from app.ledger.returns import extend as extend_hold
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
    who = caller_without_query()
    with transaction() as connection:
        row = transaction_pages.get(
            connection, transaction_id, organization_id=who.organization.id, sandbox=who.sandbox
        )
    return envelope.success(payloads.transaction_payloads([row])[0])


@blueprint.post("/v1/transactions/<int:transaction_id>/extend")
def extend(transaction_id: int) -> Response:
    """Answer 200 with the transaction. Works also while the organization may not issue."""
    who = caller_without_query()
    held_until = read_json(HELD_UNTIL.read_alone)
    organization_id, sandbox = who.organization.id, who.sandbox
    with transaction() as connection:
        extend_hold(connection, transaction_id, held_until, organization_id=organization_id, sandbox=sandbox)
        row = transaction_pages.get(connection, transaction_id, organization_id=organization_id, sandbox=sandbox)
    return envelope.success(payloads.transaction_payloads([row])[0])
