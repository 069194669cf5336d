"""Webhooks as a test of deliveries handles them: made, with events in their logs."""

import pytest
from cryptography.fernet import Fernet

from app.encryption import encrypted
from app.events import log
from app.events.sequencer import number_events
from app.postgres.database import transaction
from app.scope import Scope
from app.settings import settings
from app.webhooks import cursors
from app.webhooks.actions import LAST_SEQUENCE, new_secret
from app.webhooks.cursors import Due
from app.webhooks.webhook import Webhook, webhooks
from tests.integration import books


def allow_receivers_here(monkeypatch: pytest.MonkeyPatch) -> None:
    """Set what a delivery to a receiver of this machine needs."""
    monkeypatch.setenv("POINTS_WEBHOOK_ALLOW", "127.0.0.0/8")
    monkeypatch.setenv("POINTS_SECRETS_KEY", Fernet.generate_key().decode())
    settings.cache_clear()


def number(organization_id: int) -> None:
    books.run(number_events, organization_id)


def write(organization_id: int, *kinds: str, sandbox: bool = False) -> None:
    """Write an event of each type, and number them."""
    for kind in kinds:
        books.run(log.write, kind, organization_id, sandbox=sandbox, data={"key": {"id": 1, "sandbox": sandbox}})
    number(organization_id)


def make(organization_id: int, url: str, *types: str, secret: str | None = None) -> Webhook:
    with transaction() as connection:
        scope, secret = Scope(organization_id, sandbox=False), encrypted(secret or new_secret())
        return webhooks.add(connection, scope, url=url, types=list(types or "*"), secret=secret, position=LAST_SEQUENCE)


def due() -> list[Due]:
    return books.run(cursors.due)
