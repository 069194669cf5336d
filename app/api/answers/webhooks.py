"""The bodies of webhooks and their deliveries, built by pure functions."""

from datetime import datetime
from typing import Any

from app.pages.delivery_pages import DeliveryRow
from app.values.timestamps import timestamp
from app.webhooks.webhooks import WebhookRow


def webhook_payload(webhook: WebhookRow, *, secret: str | None = None) -> dict[str, Any]:
    """A webhook as it is now; only the call that makes a secret shows it."""
    return {
        "id": webhook.id,
        "url": webhook.url,
        "types": webhook.types,
        "description": webhook.description,
        "status": webhook.status,
        "disabled_reason": webhook.disabled_reason,
        "position": webhook.position,
        "failures": webhook.failures,
        "failing_since": _moment(webhook.failing_since),
        "retry_at": _moment(webhook.retry_at),
        "old_secret_until": _moment(webhook.previous_secret_until),
        "created_at": timestamp(webhook.created_at),
        **({} if secret is None else {"secret": secret}),
    }


def delivery_payload(delivery: DeliveryRow) -> dict[str, Any]:
    """An attempt to deliver an event."""
    return {
        "id": delivery.id,
        "event": {"id": delivery.event_id, "sequence": delivery.sequence, "type": delivery.type},
        "attempt": delivery.attempt,
        "delivered": delivery.error is None,
        "status": delivery.status,
        "ms": delivery.ms,
        "error": delivery.error,
        "created_at": timestamp(delivery.created_at),
    }


def _moment(moment: datetime | None) -> str | None:
    return None if moment is None else timestamp(moment)
