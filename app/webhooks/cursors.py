"""Moving webhooks along the log: to find what is due, own it, read its next events, note an attempt, release it.

A worker owns a webhook until the moment `owned_until` in its row, so a worker that dies blocks it for no longer. An
advisory lock would hold a connection for as long as a receiver is slow, and does not work behind a transaction pooler
(decision 20). Each write of an owner names the moment that it wrote last. If another worker or a call has changed the
row since, the write changes nothing.
"""

from datetime import datetime
from typing import NamedTuple

from sqlalchemy import Connection, text

from app.postgres.database import fetch_all
from app.webhooks.attempts import DELAY_MAX_S, Delivery
from app.webhooks.webhook import Webhook, webhooks

# Longer than an attempt and the work between two attempts.
OWNED_S = 20
# A receiver whose last attempt took this long is slow.
SLOW_MS = 1_000

_UNTIL = f"clock_timestamp() + interval '{OWNED_S} s'"


def _is_over(moment: str, *, longest_s: float) -> str:
    """Return the condition that a moment has come. One further ahead was written before the clock was set back."""
    return f"""({moment} IS NULL OR {moment} <= clock_timestamp()
                OR {moment} > clock_timestamp() + interval '{2 * longest_s} s')"""


_IS_DUE = f"""w.disabled_reason IS NULL AND {_is_over("w.retry_at", longest_s=DELAY_MAX_S)}
              AND {_is_over("w.owned_until", longest_s=OWNED_S)} AND w.position < l.last_sequence"""
_LOG = "(l.organization_id, l.sandbox) = (w.organization_id, w.sandbox)"


class Owned(NamedTuple):
    """A webhook that this worker owns, as it was at that moment; `secrets` are encrypted, the newest first."""

    id: int
    organization_id: int
    sandbox: bool
    url: str
    types: list[str]
    secrets: list[str]
    position: int
    failures: int
    last_sequence: int
    owned_until: datetime


class Due(NamedTuple):
    """A webhook that has something to deliver now; `is_slow` if its receiver took long to answer the last time."""

    webhook_id: int
    organization_id: int
    is_slow: bool


def own(connection: Connection, webhook_id: int) -> Owned | None:
    """Own a webhook that has something to deliver; None if it has nothing, or another worker owns it."""
    row = connection.execute(_OWN, {"id": webhook_id}).one_or_none()
    return None if row is None else Owned._make(row)


_OWN = text(f"""
    UPDATE webhooks w SET owned_until = {_UNTIL}
    FROM event_logs l
    WHERE w.id = :id AND {_LOG} AND {_IS_DUE}
    RETURNING w.id, w.organization_id, w.sandbox, w.url, w.types,
              w.secret || ARRAY(SELECT secret FROM unnest(w.previous_secrets, w.previous_until) AS p (secret, until)
                                WHERE until > clock_timestamp()),
              w.position, w.failures, l.last_sequence, w.owned_until
""")


def advance(connection: Connection, owned: Owned, sequence: int, *, delivered: Delivery | None = None) -> Owned | None:
    """Move on to a sequence, own the webhook for longer, and return the new state; None if it is no longer owned.

    Args:
        delivered: the attempt that delivered the event with this sequence; None if events were passed over.
    """
    parameters = {"id": owned.id, "owned_until": owned.owned_until, "position": sequence}
    if delivered is None:
        row = connection.execute(_PASS, parameters).one_or_none()
    else:
        row = connection.execute(_ADVANCE, parameters | _values(owned, delivered)).one_or_none()
    if row is None:
        return None
    moved = owned._replace(position=sequence, failures=0)
    return moved._replace(last_sequence=row.last_sequence, owned_until=row.owned_until)


_WHERE_OWNED = f"""
    FROM event_logs l
    WHERE w.id = :id AND w.owned_until = :owned_until AND {_LOG}
    RETURNING w.owned_until, l.last_sequence
"""
_PASS = text(f"UPDATE webhooks w SET position = :position, failures = 0, owned_until = {_UNTIL} {_WHERE_OWNED}")
_NOTED = """noted AS (
        INSERT INTO webhook_deliveries (webhook_id, sequence, event_id, type, attempt, status, ms, error)
        VALUES (:id, :sequence, :event_id, :type, :attempt, :status, :ms, :error)
    )"""
_IS_SLOW = f":ms >= {SLOW_MS}"
_ADVANCE = text(f"""
    WITH {_NOTED}
    UPDATE webhooks w
    SET position = :position, failures = 0, failing_since = NULL, retry_at = NULL, is_slow = {_IS_SLOW},
        owned_until = {_UNTIL} {_WHERE_OWNED}
""")


def _values(owned: Owned, delivery: Delivery) -> dict[str, object]:
    return {
        "sequence": delivery.sequence,
        "event_id": delivery.event_id,
        "type": delivery.type,
        "attempt": owned.failures + 1,
        "status": delivery.attempt.status,
        "ms": delivery.attempt.ms,
        "error": delivery.attempt.error,
    }


def fail(connection: Connection, owned: Owned, delivery: Delivery, *, delay_s: float) -> Webhook | None:
    """Note a failure and release the webhook until the next attempt; None if it is no longer owned.

    410 disables it, and so do five days without a success. They begin anew with an event that has not failed yet: after
    a skip or a replay, no attempt may have been made for days.
    """
    parameters = {"id": owned.id, "owned_until": owned.owned_until, "delay_s": delay_s}
    row = connection.execute(
        _FAIL, parameters | _values(owned, delivery) | {"is_gone": delivery.attempt.status == _STATUS_GONE}
    ).one_or_none()
    return None if row is None else Webhook._make(row)


_STATUS_GONE = 410
_SINCE = "CASE WHEN failures > 0 THEN failing_since END"
_FAIL = text(f"""
    WITH {_NOTED}
    UPDATE webhooks
    SET failures = failures + 1, failing_since = coalesce({_SINCE}, clock_timestamp()), owned_until = NULL,
        is_slow = {_IS_SLOW}, (disabled_reason, retry_at) = (
            SELECT reason, CASE WHEN reason IS NULL THEN clock_timestamp() + make_interval(secs => :delay_s) END
            FROM (SELECT CASE WHEN :is_gone THEN 'gone'
                              WHEN {_SINCE} <= clock_timestamp() - interval '5 days' THEN 'failing'
                         END AS reason) AS decided)
    WHERE id = :id AND owned_until = :owned_until RETURNING {webhooks.columns}
""")


def release(connection: Connection, owned: Owned, *, for_s: float = 0.0) -> None:
    """Release an owned webhook; with `for_s`, it is not due for that many seconds."""
    connection.execute(_RELEASE, {"id": owned.id, "owned_until": owned.owned_until, "for_s": for_s})


_RELEASE = text("""
    UPDATE webhooks
    SET owned_until = NULL,
        retry_at = CASE WHEN :for_s > 0 THEN clock_timestamp() + make_interval(secs => :for_s) ELSE retry_at END
    WHERE id = :id AND owned_until = :owned_until
""")


def due(connection: Connection) -> list[Due]:
    """Return the webhooks that have something to deliver now and that nobody owns, the longest waiting first."""
    return [Due._make(row) for row in fetch_all(connection, _DUE, {})]


_DUE = f"""
    SELECT w.id, w.organization_id, w.is_slow FROM webhooks w JOIN event_logs l ON {_LOG} WHERE {_IS_DUE}
    ORDER BY w.retry_at NULLS FIRST, w.id
""".encode()
