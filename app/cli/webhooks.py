"""`points webhooks`: list them with their lag, and encrypt their secrets again."""

import click

from app.cli.answer import Answer, Columns
from app.cli.operator_command import by_operator, operator_command
from app.postgres.database import snapshot, transaction
from app.webhooks.actions import reencrypt_all
from app.webhooks.lag import Lag, lags

_COLUMNS: Columns = {
    "ID": "id",
    "Organization": "organization_id",
    "Mode": "mode",
    "Status": "status",
    "Reason": "disabled_reason",
    "Behind": "lag_events",
    "Seconds": lambda row: f"{row['lag_seconds']:.0f}",
    "Failures": "failures",
    "Again at": "retry_at",
    "URL": "url",
}


@click.group()
def webhooks() -> None:
    """List webhooks with how far they are behind, and encrypt their secrets again."""


@webhooks.command(name="list")
@operator_command
def list_webhooks() -> Answer:
    """List the webhooks of all organizations."""
    with snapshot() as connection:
        found = lags(connection)
    return Answer([_document(lag) for lag in found], columns=_COLUMNS)


def _document(lag: Lag) -> dict[str, object]:
    webhook = lag.webhook
    return {
        **{name: getattr(webhook, name) for name in ("id", "organization_id", "sandbox")},
        "mode": "development" if webhook.sandbox else "live",
        **{name: getattr(webhook, name) for name in ("url", "types", "status", "disabled_reason", "position")},
        "lag_events": lag.events,
        "lag_seconds": lag.seconds,
        **{name: getattr(webhook, name) for name in ("failures", "failing_since", "retry_at")},
    }


@webhooks.command()
@operator_command
def reencrypt() -> Answer:
    """Encrypt all secrets with the newest key of POINTS_SECRETS_KEY, so that older keys can be removed from it."""
    with transaction(by=by_operator()) as connection:
        count = reencrypt_all(connection)
    return Answer({"webhooks": count}, sentence=f"The secrets of {count} webhooks are encrypted with the newest key.")
