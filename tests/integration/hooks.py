"""Webhooks as a test of deliveries handles them: made, with events in their logs."""

from app.events import log
from app.events.sequencer import number_events
from app.postgres.database import transaction
from app.webhooks import cursors, webhooks
from app.webhooks.cursors import Due
from app.webhooks.secrets import encrypted, new_secret
from app.webhooks.webhooks import WebhookRow


def number(organization_id: int) -> None:
    with transaction() as connection:
        number_events(connection, organization_id)


def write(organization_id: int, *kinds: str, sandbox: bool = False) -> None:
    """Write an event of each type, and number them."""
    for kind in kinds:
        with transaction() as connection:
            log.write(connection, kind, organization_id, sandbox=sandbox, data={"key": {"id": 1, "sandbox": sandbox}})
    number(organization_id)


def make(organization_id: int, url: str, *types: str, secret: str | None = None) -> WebhookRow:
    with transaction() as connection:
        return webhooks.create(
            connection,
            organization_id=organization_id,
            sandbox=False,
            url=url,
            types=types or ("*",),
            description=None,
            secret=encrypted(secret or new_secret()),
        )


def due() -> list[Due]:
    with transaction() as connection:
        return cursors.due(connection)
