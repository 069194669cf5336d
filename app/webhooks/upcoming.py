"""The events that a webhook is to be sent next."""

from sqlalchemy import Connection

from app.events import log
from app.events.payloads import Event
from app.events.read import page
from app.events.types import matching
from app.webhooks.cursors import Owned
from app.webhooks.webhooks import WebhookRow

# The most events that are read at a time, and that are looked at if few match.
_PAGE = 100
_LOOKED_AT_MAX = 5_000


def upcoming(connection: Connection, webhook: Owned | WebhookRow, *, last_sequence: int) -> tuple[list[Event], int]:
    """Return some of the next events for a webhook, and the sequence up to which there is no other event for it.

    A ping is only for the webhook that it names, with any types.
    """
    up_to = min(webhook.position + _LOOKED_AT_MAX, last_sequence)
    found = page(
        connection,
        webhook.organization_id,
        sandbox=webhook.sandbox,
        after=webhook.position,
        types=matching((*webhook.types, log.PING)),
        limit=_PAGE,
        up_to=up_to,
    )
    if len(found) == _PAGE:
        up_to = found[-1].sequence
    return [one for one in found if one.type != log.PING or one.data["webhook"]["id"] == webhook.id], up_to
