"""`/v1/transactions`: transactions as they are now, and holding one for longer."""

from datetime import datetime
from functools import partial
from typing import Any

from app.api.calls import Answer, call
from app.api.openapi.examples import CREDITED, HELD, HELD_LONGER
from app.api.refusals import BAD_QUERY
from app.api.requests.query import query
from app.api_keys import Caller
from app.batches import payloads
from app.batches.transaction import Transaction
from app.errors import CannotExtend, NotFound
from app.ledger.returns import EXTEND, HELD_FOR_EVER, HELD_UNTIL
from app.ledger.returns import extend as extend_hold
from app.noun_fields import page_of
from app.pages import transaction_pages
from app.pages.queries import next_cursor, parse_page_request
from app.postgres.database import single_statement, snapshot, transaction
from app.values.key_bounds import READ, SEND

_NONE = NotFound("transaction", 131_072)
_of_transactions = partial(call, group="Transactions")


@_of_transactions(
    "GET /v1/transactions",
    "All transactions, page by page",
    scopes=(READ,),
    query="transactions",
    answers=Answer(
        about="A page of the list.",
        data=page_of(Transaction, "transaction", "transactions"),
        examples={"transactions": {"transactions": [HELD, CREDITED]}},
    ),
    refuses=[BAD_QUERY],
)
def list_transactions(who: Caller) -> dict[str, Any]:
    """The organization's transactions in the key's mode, as they are now, ordered by when they were issued. With
    `email`, `user` or `reference` they are ordered by their ids.

    {pages}
    """
    asked = parse_page_request("transactions", query(), who)
    with snapshot() as connection:
        page = transaction_pages.page(connection, asked.filters, start=asked.start, limit=asked.limit)
    rows = payloads.transaction_payloads(page.rows)
    return {"transactions": rows, "next_cursor": next_cursor("transactions", asked, page)}


@_of_transactions(
    "GET /v1/transactions/{id}",
    "One transaction, as it is now",
    scopes=(READ,),
    answers=Answer(about="The transaction.", data=Transaction, examples={"transaction": CREDITED}),
    refuses=[_NONE],
)
def show_transaction(who: Caller, transaction_id: int) -> Any:
    """Shows all later claims and reversals."""
    with single_statement() as connection:
        row = transaction_pages.get(connection, transaction_id, who.scope)
    return payloads.transaction_payloads([row])[0]


@_of_transactions(
    "POST /v1/transactions/{id}/extend",
    "Hold a transaction for longer",
    scopes=(SEND,),
    body=EXTEND,
    read=HELD_UNTIL.read_alone,
    sent={"longer": {"held_until": "2026-06-30T00:00:00Z"}},
    answers=Answer(
        about="The transaction, with its new `held_until`.", data=Transaction, examples={"extended": HELD_LONGER}
    ),
    refuses=[_NONE, CannotExtend(HELD_FOR_EVER)],
)
def extend_transaction(who: Caller, transaction_id: int, held_until: datetime) -> Any:
    """Moves `held_until` of a held transaction to a later moment. Until then the points are credited when an account
    with the address is registered; afterwards they cannot be claimed, and go back to the organization. Moving it to the
    same moment again changes nothing. Works also while the organization is disabled or suspended.
    """
    with transaction() as connection:
        extend_hold(connection, transaction_id, held_until, who.scope, sent_by=who.sent_by)
        row = transaction_pages.get(connection, transaction_id, who.scope)
    return payloads.transaction_payloads([row])[0]
