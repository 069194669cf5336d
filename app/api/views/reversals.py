"""`GET /v1/reversals` and `GET /v1/reversals/{id}`: reversals as they are now, queued or final."""

from flask import Blueprint, Response

from app.api.answers import envelope
from app.api.auth import caller, caller_without_query
from app.api.listing import page_answer
from app.errors import NotFound
from app.pages import lists
from app.postgres.database import transaction
from app.reversals.reversal import entries_of, listed_reversals, reversals, whole_reversal_payload
from app.values.key_bounds import READ

blueprint = Blueprint("reversals", __name__)


@blueprint.get("/v1/reversals")
def list_reversals() -> Response:
    """Answer 200 with a page of the organization's reversals in the key's mode, newest first."""
    return page_answer("reversals", caller(), lists.reversals, listed_reversals.payload)


@blueprint.get("/v1/reversals/<int:reversal_id>")
def show_reversal(reversal_id: int) -> Response:
    """Answer 200 with the reversal; 404 also for a reversal of another organization or mode.

    A key that may reverse and not read sees the reversals that it has asked for.
    """
    who = caller_without_query()
    with transaction() as connection:
        reversal = reversals.get(connection, reversal_id, who.scope)
        if reversal.api_key_id != who.api_key_id and not who.bounds.allow((READ,)):
            raise NotFound("reversal", reversal_id)
        entries = entries_of(connection, reversal.id, organization_id=reversal.organization_id)
    return envelope.success(whole_reversal_payload(reversal, entries))
