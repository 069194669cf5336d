"""Reading a log, oldest first, and the JSON of its events: the same bytes in `GET /v1/events` and for a webhook.

A published event never changes. So its body is built from columns that are written only once. Later claims, reversals
and changes of names do not show in it.
"""

import json
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any

import orjson
from sqlalchemy import Connection, text

from app import logs
from app.events import log
from app.settings import INT64_MAX
from app.values import payloads
from app.values.payloads import approval_of, sender_of
from app.values.timestamps import timestamp

# The version of the form of events.
VERSION = "1.0"

# An event stays under 20 kB. Metadata may be larger than that as JSON; then the event holds the path of the batch.
_METADATA_BYTES_MAX = 12_000

# What `GET /v1/events` shows in the place of data that cannot be rendered.
_NOT_RENDERABLE = {"error": "The data of this event cannot be shown as JSON. Ask the operator of the service for it."}

_log = logs.logger()


@dataclass(frozen=True, kw_only=True, slots=True)
class Event:
    """One event of an organization's log, or of the platform's.

    `data` is its JSON object, without any e-mail address; None if it cannot be read from what is stored.
    """

    id: int
    organization_id: int
    sandbox: bool
    sequence: int
    type: str
    created_at: datetime
    data: dict[str, Any] | None

    @property
    def name(self) -> str:
        """Return the id that callers see, also as `webhook-id`."""
        return f"evt_{self.id}"


class NotRenderable(Exception):
    """An event's data cannot be written as JSON: it holds a number beyond 64 bits, for example, or is unreadable."""


def render(event: Event) -> bytes:
    """Render an event as JSON: the same bytes each time and everywhere.

    Raises:
        NotRenderable: its data cannot be written as JSON.
    """
    if event.data is None:
        raise NotRenderable
    try:
        return _render(event, event.data)
    except orjson.JSONEncodeError as error:
        tell_not_renderable(event.id, event.organization_id, error)
        raise NotRenderable from None


def render_anyway(event: Event) -> bytes:
    """Render an event as JSON; if its data cannot be rendered, with a sentence (`error`) in its place."""
    try:
        return render(event)
    except NotRenderable:
        return _render(event, _NOT_RENDERABLE)


def tell_not_renderable(event_id: int, organization_id: int, error: Exception) -> None:
    """Log that an event's data cannot be rendered."""
    _log.error("event_not_renderable", event_id=event_id, organization_id=organization_id, **logs.kind_of(error))


def _render(event: Event, data: dict[str, Any]) -> bytes:
    return orjson.dumps(
        {
            "type": event.type,
            "timestamp": timestamp(event.created_at),
            "id": event.name,
            "sequence": event.sequence,
            "sandbox": event.sandbox,
            "version": VERSION,
            "organization": None if event.organization_id == log.PLATFORM else {"id": event.organization_id},
            "data": data,
        }
    )


def batch_data(row: Any) -> dict[str, Any]:
    """Build the `data` of an event about a batch: the batch as the list of batches showed it at that time."""
    status = _status_then(row)
    is_issued = status == "issued"
    metadata, more = row.metadata, {}
    if metadata is not None and len(orjson.dumps(metadata)) > _METADATA_BYTES_MAX:
        metadata, more = None, {"more": f"/v1/batches/{row.batch_id}"}
    own = {
        "status": status,
        "final": status not in payloads.NOT_FINAL,
        "refusal": row.batch_refusal if status == "refused" else None,
        "metadata": metadata,
        "api_key_id": row.batch_api_key_id,
        "approval": None if status == "awaiting_approval" else row.approval,
        "counts": payloads.batch_counts(row, credited=row.credited) if is_issued else None,
        "created_at": row.batch_created_at,
        "send_at": row.send_at or row.batch_send_at,
        "issued_at": row.issued_at if is_issued else None,
        "amount": row.debited_amount if is_issued else None,
        "current_balance": row.batch_balance if is_issued else None,
    }
    return {"batch": payloads.listed_payload(payloads.BATCH, row, own) | more}


def _status_then(row: Any) -> str:
    """Return the status of a batch right after what an event tells of it."""
    if row.type == log.BATCH_APPROVED:
        return "scheduled" if row.send_at is not None and row.send_at > row.approved_at else "queued"
    status: str = row.type.removeprefix("batch.")
    return status


def reversal_data(row: Any) -> dict[str, Any]:
    """Build the `data` of an event about a reversal: the reversal as the list of reversals showed it at that time."""
    own = {
        "status": "done",
        "final": True,
        "refusal": None,
        "batch_id": row.reversal_batch_id,
        "api_key_id": row.reversal_api_key_id,
        "created_at": row.reversal_created_at,
        "amount": row.reversed_amount,
        "current_balance": row.reversal_balance,
    }
    return {"reversal": payloads.listed_payload(payloads.REVERSAL, row, own)}


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
