"""The event log: the events, numbered for each organization and mode."""

from datetime import datetime
from typing import Any

from sqlalchemy import JSON, BigInteger, CheckConstraint, Identity, Integer, PrimaryKeyConstraint, text
from sqlalchemy.dialects.postgresql import TIMESTAMP
from sqlalchemy.orm import Mapped, mapped_column

from app.models.base import TEXT, Base, created_at_column, moment_column

_TYPES = (
    "'batch.scheduled', 'batch.issued', 'batch.refused', 'batch.cancelled', 'transaction.claimed',"
    " 'transaction.returned', 'reversal.issued', 'balance.refilled', 'balance.low', 'organization.suspended',"
    " 'organization.resumed', 'organization.disabled', 'organization.enabled', 'key.created', 'key.revoked',"
    " 'webhook.disabled', 'ping'"
)


class UnnumberedEvent(Base):
    """An event as written with the change that it reports. The sequencer numbers it and moves it to `events`.

    It names the batch or the reversal that it is about, or holds its `data`. Ids rise in an order that respects cause.
    Two values of a batch that may change later are stored here: its moment (`send_at`), and how many of its
    transactions were `credited` at the issue.
    """

    __tablename__ = "unnumbered_events"
    __table_args__ = (
        PrimaryKeyConstraint("organization_id", "id"),
        CheckConstraint(f"type IN ({_TYPES})", name="type_known"),
        CheckConstraint("num_nonnulls(batch_id, reversal_id, data) = 1", name="tells_of_one"),
        # Every row lives for less than a second, so vacuum must start early, not at a share of a large table.
        {"postgresql_with": {"autovacuum_vacuum_scale_factor": 0, "autovacuum_vacuum_threshold": 5000}},
    )

    organization_id: Mapped[int] = mapped_column(BigInteger, autoincrement=False)
    id: Mapped[int] = mapped_column(BigInteger, Identity(always=True))
    created_at: Mapped[datetime] = created_at_column()
    batch_id: Mapped[int | None] = mapped_column(BigInteger)
    reversal_id: Mapped[int | None] = mapped_column(BigInteger)
    send_at: Mapped[datetime | None] = moment_column()
    credited: Mapped[int | None] = mapped_column(Integer)
    sandbox: Mapped[bool]
    type: Mapped[str] = mapped_column(TEXT)
    data: Mapped[dict[str, Any] | None] = mapped_column(JSON)


class Event(Base):
    """An event with its sequence: 1, 2, 3 … for each organization and mode, without a gap.

    `idempotency_key` is a copy from the batch or the reversal, which forgets it before the event is dropped.
    """

    __tablename__ = "events"
    __table_args__ = (
        PrimaryKeyConstraint("organization_id", "sandbox", "sequence"),
        CheckConstraint("sequence > 0", name="sequence_positive"),
    )

    organization_id: Mapped[int] = mapped_column(BigInteger, autoincrement=False)
    sequence: Mapped[int] = mapped_column(BigInteger, autoincrement=False)
    id: Mapped[int] = mapped_column(BigInteger)
    created_at: Mapped[datetime] = mapped_column(TIMESTAMP(timezone=True))
    batch_id: Mapped[int | None] = mapped_column(BigInteger)
    reversal_id: Mapped[int | None] = mapped_column(BigInteger)
    send_at: Mapped[datetime | None] = moment_column()
    credited: Mapped[int | None] = mapped_column(Integer)
    sandbox: Mapped[bool]
    type: Mapped[str] = mapped_column(TEXT)
    idempotency_key: Mapped[str | None] = mapped_column(TEXT)
    data: Mapped[dict[str, Any] | None] = mapped_column(JSON)


class EventLog(Base):
    """The log of an organization in one mode: its last sequence, and which of its events are dropped.

    All up to and including `dropped_to` are dropped; the youngest of them was written at `dropped_until`.
    """

    __tablename__ = "event_logs"
    __table_args__ = (
        PrimaryKeyConstraint("organization_id", "sandbox"),
        CheckConstraint("dropped_to BETWEEN 0 AND last_sequence", name="dropped_to_in_range"),
        CheckConstraint("(dropped_to = 0) = (dropped_until IS NULL)", name="dropped_until_a_moment"),
        # Every numbering updates this row, as every drain does an organization's.
        {"postgresql_with": {"fillfactor": 50}},
    )

    organization_id: Mapped[int] = mapped_column(BigInteger, autoincrement=False)
    last_sequence: Mapped[int] = mapped_column(BigInteger)
    dropped_to: Mapped[int] = mapped_column(BigInteger, server_default=text("0"))
    dropped_until: Mapped[datetime | None] = moment_column()
    sandbox: Mapped[bool]
