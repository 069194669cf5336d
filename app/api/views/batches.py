"""`GET /v1/batches` and `GET /v1/batches/{id}`: batches as they are now, before and after they are issued."""

from typing import Any

from flask import Blueprint, Response
from sqlalchemy import Connection

from app.api.answers import envelope
from app.api.auth import caller, caller_without_query
from app.api.requests.query import query
from app.api_keys import Caller
from app.batches import payloads
from app.batches.batch import batches, find_metadata, listed_batches
from app.batches.transaction import transactions_of
from app.errors import NotFound
from app.pages import batch_pages
from app.pages.queries import next_cursor, parse_page_request
from app.postgres.database import transaction
from app.values.key_bounds import READ

blueprint = Blueprint("batches", __name__)


@blueprint.get("/v1/batches")
def list_batches() -> Response:
    """Answer 200 with a page of the organization's batches in the key's mode, newest first."""
    who = caller()
    asked = parse_page_request("batches", query(), who)
    with transaction() as connection:
        page = batch_pages.page(connection, asked.filters, start=asked.start, limit=asked.limit)
        ids = [batch.id for batch in page.rows]
        issued = [batch.id for batch in page.rows if batch.debited_count]
        states = payloads.count_states(connection, issued, organization_id=who.organization.id)
        metadata = find_metadata(connection, ids, organization_id=who.organization.id)
    shown = [
        listed_batches.payload(
            batch._replace(states=states.get(batch.id, batch.states), metadata=metadata.get(batch.id))
        )
        for batch in page.rows
    ]
    return envelope.success({"batches": shown, "next_cursor": next_cursor("batches", asked, page)})


@blueprint.get("/v1/batches/<int:batch_id>")
def show_batch(batch_id: int) -> Response:
    """Answer 200 with the batch; 404 also for a batch of another organization or mode.

    A key that may send and not read sees the batches that it has sent.
    """
    who = caller_without_query()
    with transaction() as connection:
        body = read_batch(connection, batch_id, who, only_own=not who.bounds.allow((READ,)))
    return envelope.success(body)


def read_batch(connection: Connection, batch_id: int, who: Caller, *, only_own: bool = False) -> dict[str, Any]:
    """Return the body of a batch as it is now.

    Args:
        only_own: only if the caller's key has sent it.

    Raises:
        NotFound: the caller has no such batch.
    """
    batch = batches.get(connection, batch_id, who.scope)
    if only_own and batch.api_key_id != who.api_key_id:
        raise NotFound("batch", batch_id)
    transactions = transactions_of(connection, batch.id, organization_id=batch.organization_id)
    metadata = find_metadata(connection, [batch.id], organization_id=batch.organization_id).get(batch.id)
    return payloads.whole_batch_payload(batch, transactions, metadata=metadata)
