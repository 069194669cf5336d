"""An event: what callers see of it, the same bytes in `GET /v1/events` and for a webhook; and reading a log.

A published event never changes. So its body is built from columns that are written only once. Later claims, reversals
and changes of names do not show in it.
"""

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Annotated, Any, NamedTuple

import orjson
from pydantic import BaseModel, Field, create_model
from sqlalchemy import Connection, text

from app import logs
from app.batches.batch import (
    AWAITING_APPROVAL,
    ISSUED,
    NOT_FINAL,
    QUEUED,
    REFUSED,
    SCHEDULED,
    Batch,
    StateCounts,
    batches,
    listed_batches,
)
from app.events import event_types
from app.noun import Noun
from app.noun_fields import Id, Null, Shown, example, says, says_one_of
from app.reversals.reversal import DONE, Reversal, listed_reversals, reversals
from app.scope import Scope
from app.settings import INT64_MAX
from app.values.timestamps import timestamp

# The version of the form of events.
VERSION = "1.0"

# An event stays under 20 kB. Metadata may be larger than that as JSON; then the event holds the path of the batch.
_METADATA_BYTES_MAX = 12_000

# What `GET /v1/events` shows in the place of data that cannot be rendered.
_NOT_RENDERABLE = {"error": "The data of this event cannot be shown as JSON. Ask the operator of the service for it."}

_log = logs.logger()


_Name = Annotated[str, Field(pattern=r"^evt_[1-9]\d*$")]


class EventOrganization(BaseModel):
    """The organization of an event."""

    id: Id = says("The id of the organization.", 1)


class Event(NamedTuple):
    """One thing that happened. An event never changes."""

    id: int
    organization_id: int
    type: Annotated[str, says_one_of(event_types.TYPES, "What happened.", "batch.issued")]
    created_at: Annotated[
        datetime,
        says("When it happened. ISO 8601 in UTC, six decimals.", "2026-01-31T09:30:00.482913Z"),
        Shown(name="timestamp"),
    ]
    sequence: Annotated[Id, says("Its place in the log: 1, 2, 3 … without a gap but for `restored_at`.", 4)]
    sandbox: Annotated[bool, says("It is in the log of the sandbox.", False)]
    # None if it cannot be read from what is stored.
    data: Annotated[
        Mapping[str, Any] | None,
        says(
            "What changed, as it was then: `batch` (as in the list of batches), `reversal` (as in the list of"
            " reversals), `organization`, `key` (a new one with its bounds) or `webhook`. A claim has `user`,"
            " `transactions` (up to 100 ids), `count`, `amount` and `more`, a path that lists all transactions of the"
            " user. A limit that a key has reached has `day`, `used` and `asked`. There are no addresses. Data that"
            " cannot be shown as JSON is replaced by `error`, a sentence.",
            {"batch": example(listed_batches.model)},
        ),
        Shown(described=dict[str, Any]),
    ]
    restored_at: Annotated[
        datetime | None,
        says(
            "When the service was last restored from a backup before this event; absent if it never was. A restore"
            " takes back what happened shortly before it, and the next sequence is 1,000,000,000 higher.",
            default_factory=str,
        ),
    ] = None

    @property
    def name(
        self,
    ) -> Annotated[
        _Name,
        says("The id of the event, the same in the log and in webhooks.", "evt_7"),
        Shown(name="id", before="sequence"),
    ]:
        return f"evt_{self.id}"

    @property
    def version(self) -> Annotated[str, says("The version of this format.", VERSION), Shown(before="data")]:
        return VERSION

    @property
    def organization(
        self,
    ) -> Annotated[
        Mapping[str, int] | None,
        says("The organization of the event."),
        Shown(before="data", described=EventOrganization),
    ]:
        return None if self.organization_id == event_types.PLATFORM else {"id": self.organization_id}


events = Noun(Event, "event", "events")
PlatformEvent = create_model(
    "PlatformEvent",
    __base__=events.model,
    __doc__="One thing that happened to a user or an organization. An event never changes.",
    type=(str, says_one_of(event_types.PLATFORM_TYPES, "What happened.", "user.registered")),
    id=(_Name, says("The id of the event.", "evt_9")),
    sequence=(Id, says("Its place in the log of the platform: 1, 2, 3 … without a gap but for `restored_at`.", 4)),
    sandbox=(bool, says("Always false: the platform has one log.", False)),
    organization=(
        Null,
        says("Always null: the log is the platform's. `data` has what the event is about.", None),
    ),
    data=(
        dict[str, Any],
        says(
            "What it is about. `user` has its `id` alone, with `fields`, the names of those that changed."
            " `organization` is as it was then, with the live balance, or with that of the sandbox if `sandbox` is"
            " true; a refill also has `amount` and `reference`. There are no addresses and no names of users.",
            {"user": {"id": 7}},
        ),
    ),
)


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
        return orjson.dumps(events.payload(event))
    except orjson.JSONEncodeError as error:
        tell_not_renderable(event.id, event.organization_id, error)
        raise NotRenderable from None


def render_anyway(event: Event) -> bytes:
    """Render an event as JSON; if its data cannot be rendered, with a sentence (`error`) in its place."""
    try:
        return render(event)
    except NotRenderable:
        return orjson.dumps(events.payload(event._replace(data=_NOT_RENDERABLE)))


def tell_not_renderable(event_id: int, organization_id: int, error: Exception) -> None:
    """Log that an event's data cannot be rendered."""
    _log.error("event_not_renderable", event_id=event_id, organization_id=organization_id, **logs.kind_of(error))


@dataclass(frozen=True, kw_only=True, slots=True)
class LogState:
    """How far a log goes: its last sequence, and up to which its events are dropped. Both are 0 if it is empty."""

    last_sequence: int = 0
    dropped_to: int = 0


def state_of(connection: Connection, scope: Scope) -> LogState:
    """Return how far the log of an organization goes in a mode."""
    row = connection.execute(_STATE, scope._asdict()).one_or_none()
    return LogState() if row is None else LogState(last_sequence=row.last_sequence, dropped_to=row.dropped_to)


_STATE = text("""
    SELECT last_sequence, dropped_to FROM event_logs
    WHERE organization_id = :organization_id AND sandbox = :sandbox
""")


def page(
    connection: Connection,
    scope: Scope,
    *,
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
        **scope._asdict(),
        "after": after,
        "up_to": up_to,
        "types": None if types is None else list(types),
        "limit": limit,
    }
    return [_event(row) for row in connection.execute(_PAGE, parameters)]


def read_on(
    connection: Connection,
    scope: Scope,
    *,
    after: int,
    types: Sequence[str] | None,
    limit: int,
    looked_at_max: int,
    last_sequence: int,
) -> tuple[list[Event], int]:
    """Return the next events of a log up to its last, and the sequence up to which there is no other."""
    up_to = min(after + looked_at_max, last_sequence)
    found = page(connection, scope, after=after, types=types, limit=limit, up_to=up_to)
    if len(found) == limit:
        up_to = found[-1].sequence
    elif not found and up_to < last_sequence:  # A restore may have skipped all numbers for a long way.
        parameters = {**scope._asdict(), "up_to": up_to, "last_sequence": last_sequence}
        up_to = connection.execute(_NEXT, parameters).scalar_one() - 1
    return found, up_to


_NEXT = text("""
    SELECT least((SELECT sequence FROM events
                  WHERE organization_id = :organization_id AND sandbox = :sandbox AND sequence > :up_to
                  ORDER BY organization_id, sandbox, sequence LIMIT 1), :last_sequence + 1)
""")


class _Stored(NamedTuple):
    """What is stored of an event, and what only it needs of its batch."""

    id: int
    organization_id: int
    type: str
    created_at: datetime
    sequence: int
    sandbox: bool
    data: str
    batch_id: int | None
    reversal_id: int | None
    send_at: datetime | None
    credited: int
    idempotency_key: str | None
    metadata: Mapping[str, str] | None
    approved_at: datetime | None
    restored_at: datetime | None


# Each batch and reversal is looked up by itself: PostgreSQL may make the plan while the tables are small, and keeps it.
_PAGE = text(f"""
    SELECT e.id, e.organization_id, e.type, e.created_at, e.sequence, e.sandbox, CAST(e.data AS text), e.batch_id,
           e.reversal_id, e.send_at, e.credited, e.idempotency_key, b.metadata, b.approved_at,
           (SELECT restored_at FROM restores r
            WHERE (r.organization_id, r.sandbox) = (e.organization_id, e.sandbox) AND r.skipped_to < e.sequence
            ORDER BY r.skipped_to DESC LIMIT 1),
           {batches.columns_as("b.")}, {reversals.columns_as("r.")}
    FROM (SELECT * FROM events
          WHERE organization_id = :organization_id AND sandbox = :sandbox AND sequence > :after AND sequence <= :up_to
            AND (CAST(:types AS text[]) IS NULL OR type = ANY(CAST(:types AS text[])))
          ORDER BY organization_id, sandbox, sequence LIMIT :limit) e
    LEFT JOIN LATERAL (SELECT * FROM batches WHERE batches.id = e.batch_id LIMIT 1) b ON true
    LEFT JOIN LATERAL (SELECT * FROM reversals WHERE reversals.id = e.reversal_id LIMIT 1) r ON true
    ORDER BY e.sequence
""")
_OWN = len(_Stored._fields)


def _event(row: Sequence[Any]) -> Event:
    stored = _Stored(*row[:_OWN])
    return Event(
        id=stored.id,
        organization_id=stored.organization_id,
        type=stored.type,
        created_at=stored.created_at,
        sequence=stored.sequence,
        sandbox=stored.sandbox,
        data=_data(stored, row[_OWN:]),
        restored_at=stored.restored_at,
    )


def _data(stored: _Stored, its_batch_and_reversal: Sequence[Any]) -> dict[str, Any] | None:
    """Return an event's data, or None if it cannot be read, so that one such event does not hide those around it."""
    try:
        if stored.batch_id is not None:
            return _of_batch(stored, Batch(*its_batch_and_reversal[: batches.width]))
        if stored.reversal_id is not None:
            return _of_reversal(stored, Reversal(*its_batch_and_reversal[batches.width :]))
        return dict(json.loads(stored.data))
    except Exception as error:  # noqa: BLE001  # A damaged row may raise anything.
        tell_not_renderable(stored.id, stored.organization_id, error)
        return None


def _of_batch(stored: _Stored, batch: Batch) -> dict[str, Any]:
    """Return the batch as the list of batches showed it at that time."""
    status = _status_then(stored)
    metadata, more = stored.metadata, {}
    if metadata is not None and len(orjson.dumps(metadata)) > _METADATA_BYTES_MAX:
        metadata, more = None, {"more": f"/v1/batches/{batch.id}"}
    then = batch._replace(
        status=status,
        refusal=batch.refusal if status == REFUSED else None,
        metadata=metadata,
        idempotency_key=stored.idempotency_key,
        approval=_approval_then(stored, batch, status) if status in NOT_FINAL else batch.approval,
        states=StateCounts(stored.credited),
        send_at=stored.send_at or batch.send_at,
    )
    if status != ISSUED:
        then = then._replace(issued_at=None, debited_count=None, debited_amount=None, current_balance=None)
    return {"batch": listed_batches.payload(then) | more}


def _status_then(stored: _Stored) -> str:
    """Return the status of a batch right after what an event tells of it."""
    if stored.type == event_types.BATCH_APPROVED:
        return SCHEDULED if stored.send_at is not None and stored.send_at > stored.created_at else QUEUED
    return stored.type.removeprefix("batch.")


def _approval_then(stored: _Stored, batch: Batch, status: str) -> Mapping[str, Any] | None:
    """Return the approval that an event tells of a batch that was not final yet.

    A batch that was moved and awaits another has forgotten who gave the first, so only its time is told then.
    """
    if status != AWAITING_APPROVAL and stored.approved_at is not None and stored.approved_at <= stored.created_at:
        return batch.approval
    if stored.type == event_types.BATCH_APPROVED:
        return {"by": None, "api_key_id": None, "at": timestamp(stored.created_at), "reason": None}
    return None


def _of_reversal(stored: _Stored, reversal: Reversal) -> dict[str, Any]:
    """Return the reversal as the list of reversals showed it at that time."""
    then = reversal._replace(status=DONE, refusal=None, idempotency_key=stored.idempotency_key)
    return {"reversal": listed_reversals.payload(then)}
