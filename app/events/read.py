"""Reading a log, oldest first: an organization's events in one mode, or those of the platform (`log.PLATFORM`)."""

import json
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from sqlalchemy import Connection, text

from app.events.payloads import Event, batch_data, reversal_data, tell_not_renderable
from app.settings import INT64_MAX
from app.values.payloads import approval_of, sender_of


@dataclass(frozen=True, kw_only=True, slots=True)
class LogState:
    """How far a log goes: its last sequence, and up to which its events are dropped. Both are 0 if it is empty."""

    last_sequence: int = 0
    dropped_to: int = 0


def state_of(connection: Connection, organization_id: int, *, sandbox: bool) -> LogState:
    """Return how far the log of an organization goes in one mode."""
    row = connection.execute(_STATE, {"organization_id": organization_id, "sandbox": sandbox}).one_or_none()
    return LogState() if row is None else LogState(last_sequence=row.last_sequence, dropped_to=row.dropped_to)


_STATE = text("""
    SELECT last_sequence, dropped_to FROM event_logs
    WHERE organization_id = :organization_id AND sandbox = :sandbox
""")


def page(
    connection: Connection,
    organization_id: int,
    *,
    sandbox: bool,
    after: int,
    types: Sequence[str] | None = None,
    limit: int,
    up_to: int = INT64_MAX,
) -> list[Event]:
    """Return the next events of a log, oldest first.

    Args:
        after: return events after this sequence; 0 begins with the first.
        types: only events of these types; None for all.
        limit: the most events to return.
        up_to: the last sequence to look at. With few `types`, PostgreSQL reads all events up to there.
    """
    parameters = {
        "organization_id": organization_id,
        "sandbox": sandbox,
        "after": after,
        "up_to": up_to,
        "types": None if types is None else list(types),
        "limit": limit,
    }
    return [_event(row) for row in connection.execute(_PAGE, parameters)]


# Each batch and reversal is looked up by itself: PostgreSQL may make the plan while the tables are small, and keeps it.
_PAGE = text(f"""
    SELECT e.id, e.organization_id, e.sandbox, e.sequence, e.type, e.created_at, e.batch_id, e.reversal_id, e.send_at,
           e.credited, e.idempotency_key, CAST(e.data AS text) AS data,
           {sender_of("b.member_id")}, {approval_of("b.")}, b.approved_at,
           b.label, b.metadata, b.api_key_id AS batch_api_key_id, b.created_at AS batch_created_at,
           b.send_at AS batch_send_at, b.refusal AS batch_refusal, b.issued_at, b.recipient_count, b.debited_count,
           b.debited_amount, b.current_balance AS batch_balance,
           r.reason, r.batch_id AS reversal_batch_id, r.api_key_id AS reversal_api_key_id,
           r.created_at AS reversal_created_at, r.done_at, r.reversed_amount, r.current_balance AS reversal_balance
    FROM (SELECT * FROM events
          WHERE organization_id = :organization_id AND sandbox = :sandbox AND sequence > :after AND sequence <= :up_to
            AND (CAST(:types AS text[]) IS NULL OR type = ANY(CAST(:types AS text[])))
          ORDER BY organization_id, sandbox, sequence LIMIT :limit) e
    LEFT JOIN LATERAL (SELECT * FROM batches WHERE batches.id = e.batch_id LIMIT 1) b ON true
    LEFT JOIN LATERAL (SELECT * FROM reversals WHERE reversals.id = e.reversal_id LIMIT 1) r ON true
    ORDER BY e.sequence
""")


def _event(row: Any) -> Event:
    return Event(
        id=row.id,
        organization_id=row.organization_id,
        sandbox=row.sandbox,
        sequence=row.sequence,
        type=row.type,
        created_at=row.created_at,
        data=_data(row),
    )


def _data(row: Any) -> dict[str, Any] | None:
    """Return an event's data, or None if it cannot be read, so that one such event does not hide those around it."""
    try:
        if row.batch_id is not None:
            return batch_data(row)
        if row.reversal_id is not None:
            return reversal_data(row)
        data: dict[str, Any] = dict(json.loads(row.data))
        return data
    except Exception as error:  # noqa: BLE001  # A damaged row may raise anything.
        tell_not_renderable(row.id, row.organization_id, error)
        return None
