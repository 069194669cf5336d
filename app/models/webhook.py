"""Webhooks: where an organization's events are sent, the position of each, and the attempts."""

from datetime import datetime

from sqlalchemy import BigInteger, CheckConstraint, Index, Integer, text
from sqlalchemy.dialects.postgresql import ARRAY
from sqlalchemy.orm import Mapped, mapped_column

from app.models.base import TEXT, Base, created_at_column, id_column, moment_column, organization_id_column


class Webhook(Base):
    """A receiver of one organization and mode: a cursor over its events.

    `position` is the sequence of the last event that was delivered or passed over. `failures` counts the failed
    attempts of the next event, and `failing_since` is null unless the last attempt failed. The worker that delivers
    owns it until `owned_until`. The secrets are encrypted; the previous one still signs too until its moment.
    """

    __tablename__ = "webhooks"
    __table_args__ = (
        CheckConstraint("char_length(url) BETWEEN 1 AND 2000", name="url_length"),
        CheckConstraint("char_length(description) BETWEEN 1 AND 255", name="description_length"),
        CheckConstraint("cardinality(types) BETWEEN 1 AND 50", name="types_counted"),
        CheckConstraint("position >= 0", name="position_not_negative"),
        CheckConstraint("failures >= 0", name="failures_not_negative"),
        CheckConstraint("disabled_reason IN ('caller', 'gone', 'failing')", name="disabled_reason_known"),
        CheckConstraint(
            "(previous_secret IS NULL) = (previous_secret_until IS NULL)", name="previous_secret_until_a_moment"
        ),
        Index("ix_webhooks_organization", "organization_id", "sandbox"),
        # Each delivery updates this row.
        {"postgresql_with": {"fillfactor": 50}},
    )

    id: Mapped[int] = id_column()
    organization_id: Mapped[int] = organization_id_column()
    sandbox: Mapped[bool]
    url: Mapped[str] = mapped_column(TEXT)
    types: Mapped[list[str]] = mapped_column(ARRAY(TEXT))
    description: Mapped[str | None] = mapped_column(TEXT)
    secret: Mapped[str] = mapped_column(TEXT)
    previous_secret: Mapped[str | None] = mapped_column(TEXT)
    previous_secret_until: Mapped[datetime | None] = moment_column()
    position: Mapped[int] = mapped_column(BigInteger)
    disabled_reason: Mapped[str | None] = mapped_column(TEXT)
    failures: Mapped[int] = mapped_column(Integer, server_default=text("0"))
    failing_since: Mapped[datetime | None] = moment_column()
    retry_at: Mapped[datetime | None] = moment_column()
    owned_until: Mapped[datetime | None] = moment_column()
    created_at: Mapped[datetime] = created_at_column()


class WebhookDelivery(Base):
    """One attempt to deliver an event, kept for 30 days.

    There is no foreign key: the attempts of a deleted webhook are dropped by their age, like all others.
    """

    __tablename__ = "webhook_deliveries"
    __table_args__ = (
        CheckConstraint("attempt >= 1", name="attempt_counted"),
        Index("ix_webhook_deliveries_webhook", "webhook_id", "id"),
        Index("ix_webhook_deliveries_created_at", "created_at"),
    )

    id: Mapped[int] = id_column()
    webhook_id: Mapped[int] = mapped_column(BigInteger)
    sequence: Mapped[int] = mapped_column(BigInteger)
    event_id: Mapped[str] = mapped_column(TEXT)
    type: Mapped[str] = mapped_column(TEXT)
    attempt: Mapped[int] = mapped_column(Integer)
    status: Mapped[int | None] = mapped_column(Integer)
    ms: Mapped[int] = mapped_column(Integer)
    error: Mapped[str | None] = mapped_column(TEXT)
    created_at: Mapped[datetime] = created_at_column()
