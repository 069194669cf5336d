"""Asking for deliveries: after events were numbered, and after a call that lets a webhook go on."""

from collections.abc import Sequence

from app.messaging import hints
from app.messaging.jobs import submit_delivery
from app.postgres.database import single_statement
from app.webhooks import cursors


def wake(organization_id: int) -> None:
    """Ask for deliveries to an organization's webhooks that have something to deliver.

    Without Redis nothing is sent; each delivering worker finds them by its own look, once a second.

    Raises:
        DBAPIError, TimeoutError: PostgreSQL is out of reach.
    """
    with single_statement() as connection:
        webhook_ids = cursors.due_of(connection, organization_id)
    ask(webhook_ids)


def ask(webhook_ids: Sequence[int]) -> None:
    """Ask for deliveries to these webhooks. Call it once their events are committed."""
    if not webhook_ids:
        return
    for webhook_id in hints.request_deliveries(webhook_ids):
        if not submit_delivery(webhook_id):
            return  # Each further message would wait for the broker as long.
