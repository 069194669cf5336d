"""`/v1/reversals`: reversals as they are now, queued or final."""

from functools import partial
from typing import Any

from flask import Response

from app.api.calls import Answer, call
from app.api.listing import page_answer
from app.api.openapi.examples import FROM_BOTH
from app.api.refusals import BAD_QUERY
from app.api_keys import Caller
from app.errors import NotFound
from app.pages import lists
from app.postgres.database import snapshot
from app.reversals.reversal import entries_of, listed_reversals, reversals, whole_reversal_payload
from app.values.key_bounds import READ, REVERSE

_of_reversals = partial(call, group="Reversals")


@_of_reversals(
    "GET /v1/reversals",
    "All reversals, page by page",
    scopes=(READ,),
    query="reversals",
    answers=Answer(about="A page of the list.", data=listed_reversals.page(), examples={"reversals": {}}),
    refuses=[BAD_QUERY],
)
def list_reversals(who: Caller) -> Response:
    """The organization's reversals in the key's mode, as they are now, ordered by when they were accepted.

    {pages}
    """
    return page_answer("reversals", who, lists.reversals, listed_reversals.payload)


@_of_reversals(
    "GET /v1/reversals/{id}",
    "One reversal, as it is now",
    scopes=(READ, REVERSE),
    answers=Answer(
        about="The reversal.",
        data=reversals.model,
        examples={
            "reversal_done": FROM_BOTH,
            "reversal_queued": {
                "status": "queued",
                "final": False,
                **dict.fromkeys(("done_at", "transactions", "amount", "current_balance")),
            },
        },
    ),
    refuses=[NotFound("reversal", 1)],
)
def show_reversal(who: Caller, reversal_id: int) -> dict[str, Any]:
    """Works before and after the reversal is done."""
    with snapshot() as connection:
        reversal = reversals.get(connection, reversal_id, who.scope)
        if who.sent_by not in (None, reversal.api_key_id):
            raise NotFound("reversal", reversal_id)
        entries = entries_of(connection, reversal.id, organization_id=reversal.organization_id)
    return whole_reversal_payload(reversal, entries)
