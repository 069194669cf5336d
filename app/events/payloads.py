"""The payload of an event, and its JSON: the same bytes in `GET /v1/events` and in the body of a webhook.

A published event never changes. So its body is built from columns that are written only once. Later claims, reversals
and changes of names do not show in it.
"""

from dataclasses import dataclass
from datetime import datetime
from typing import Any

import orjson

from app import logs
from app.events import log
from app.values import payloads
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
    batch = payloads.listed(
        payloads.ListedBatch,
        row,
        status=status,
        final=status not in payloads.NOT_FINAL,
        refusal=row.batch_refusal if status == "refused" else None,
        metadata=metadata,
        api_key_id=row.batch_api_key_id,
        approval=None if status == "awaiting_approval" else row.approval,
        counts=_counts(row) if is_issued else None,
        created_at=row.batch_created_at,
        send_at=row.send_at or row.batch_send_at,
        issued_at=row.issued_at if is_issued else None,
        amount=row.debited_amount if is_issued else None,
        current_balance=row.batch_balance if is_issued else None,
    )
    return {"batch": payloads.listed_payload(batch) | more}


def _status_then(row: Any) -> str:
    """Return the status of a batch right after what an event tells of it."""
    if row.type == log.BATCH_APPROVED:
        return "scheduled" if row.send_at is not None and row.send_at > row.approved_at else "queued"
    status: str = row.type.removeprefix("batch.")
    return status


def _counts(row: Any) -> dict[str, int]:
    return payloads.batch_counts(
        recipients=row.recipient_count, debited=row.debited_count, credited=row.credited, reversed_whole=0
    )


def reversal_data(row: Any) -> dict[str, Any]:
    """Build the `data` of an event about a reversal: the reversal as the list of reversals showed it at that time."""
    reversal = payloads.listed(
        payloads.ListedReversal,
        row,
        status="done",
        final=True,
        refusal=None,
        batch_id=row.reversal_batch_id,
        api_key_id=row.reversal_api_key_id,
        created_at=row.reversal_created_at,
        amount=row.reversed_amount,
        current_balance=row.reversal_balance,
    )
    return {"reversal": payloads.listed_payload(reversal)}
