"""How far webhooks are behind the log, for monitoring."""

from collections.abc import Sequence
from dataclasses import dataclass

from sqlalchemy import Connection, text

from app.events.restores import skipped_after
from app.webhooks.webhook import STATUSES, Webhook, webhooks


@dataclass(frozen=True, kw_only=True, slots=True)
class Lag:
    """A webhook, how many events it is behind, and the age in seconds of the first such event."""

    webhook: Webhook
    events: int
    seconds: float


def lags(connection: Connection) -> list[Lag]:
    """Return the webhooks of all organizations with their lags, the oldest webhook first."""
    width = len(Webhook._fields)
    return [
        Lag(webhook=Webhook._make(row[:width]), events=row.lag_events, seconds=row.lag_seconds)
        for row in connection.execute(_LAGS)
    ]


# `next` is the first kept event after the position.
_LAGS = text(f"""
    SELECT {webhooks.columns_as("w.")},
           greatest(coalesce(l.last_sequence, 0) - w.position - {skipped_after("w", "w.position")}, 0) AS lag_events,
           CAST(greatest(coalesce(extract(epoch FROM clock_timestamp() - next.created_at), 0), 0) AS float)
               AS lag_seconds
    FROM webhooks w
    LEFT JOIN event_logs l ON (l.organization_id, l.sandbox) = (w.organization_id, w.sandbox)
    LEFT JOIN LATERAL (SELECT created_at FROM events e
                       WHERE e.organization_id = w.organization_id AND e.sandbox = w.sandbox
                         AND e.sequence > w.position
                       ORDER BY e.organization_id, e.sandbox, e.sequence LIMIT 1) next ON true
    ORDER BY w.id
""")


@dataclass(frozen=True, kw_only=True, slots=True)
class LagOfStatus:
    """How many webhooks have a status, and the largest lag among them, in events and in seconds."""

    webhooks: int = 0
    events: int = 0
    seconds: float = 0.0


def lag_by_status(all_lags: Sequence[Lag]) -> dict[str, LagOfStatus]:
    """Sum up lags by the status of the webhooks."""
    by_status: dict[str, LagOfStatus] = {}
    for status in STATUSES:
        those = [lag for lag in all_lags if lag.webhook.status == status]
        by_status[status] = LagOfStatus(
            webhooks=len(those),
            events=max((lag.events for lag in those), default=0),
            seconds=max((lag.seconds for lag in those), default=0.0),
        )
    return by_status
