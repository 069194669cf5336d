"""Batches, and the list of those whose credits are not folded yet."""

from datetime import datetime

from sqlalchemy import JSON, BigInteger, CheckConstraint, Index, Integer, LargeBinary, text
from sqlalchemy.dialects.postgresql import ARRAY
from sqlalchemy.orm import Mapped, mapped_column

from app.models.base import TEXT, Base, created_at_column, id_column, moment_column

_ISSUED = text("issued_at IS NOT NULL")
_SCHEDULED = text("status = 'scheduled'")
_HAS_RETURN = text("return_at IS NOT NULL")
_ENDED_AT = text("coalesce(issued_at, cancelled_at)")
_UNPAID = text("debited_count < recipient_count")


class Batch(Base):
    """One accepted send: its recipients in request order, and what became of them.

    `email_keys` is null when every address is its own normalised form. If items have their own amounts, `amount` is
    null and `running_totals` holds for each item the sum up to and including it. `labels` and `item_references` are
    null when no item has one; otherwise an item without one has a null there. `send_at` is when it is due; null: at
    once. Until then it is `scheduled`, and not in the queue. The columns from `issued_at` on are null until it is
    issued. `organization_name` and `last_refill` are the organization's at the issue, so that a replay gives the same
    answer.

    `hold_days` is how long its points may be held; null: the organization's `held_days`. `held_until` is computed from
    either at the issue; null: without end. `return_at` is when a return looks at the batch; null when nothing of it is
    held until a moment.

    There is no foreign key to the organization: its check would lock the organization's row in each INSERT of the
    front. The accepting statement joins that row instead, and organizations are never deleted.
    """

    __tablename__ = "batches"
    __table_args__ = (
        CheckConstraint("status IN ('scheduled', 'queued', 'issued', 'refused', 'cancelled')", name="status_known"),
        CheckConstraint("num_nonnulls(api_key_id, member_id) <= 1", name="sent_by_one"),
        CheckConstraint("amount > 0", name="amount_positive"),
        CheckConstraint(
            "recipient_count BETWEEN 1 AND 131072 AND cardinality(emails) = recipient_count"
            " AND (email_keys IS NULL OR cardinality(email_keys) = recipient_count)"
            " AND (running_totals IS NULL OR cardinality(running_totals) = recipient_count)"
            " AND (labels IS NULL OR cardinality(labels) = recipient_count)"
            " AND (item_references IS NULL OR cardinality(item_references) = recipient_count)",
            name="recipients_counted",
        ),
        CheckConstraint("(amount IS NULL) = (running_totals IS NOT NULL)", name="amount_or_running_totals"),
        CheckConstraint("char_length(label) <= 255", name="label_length"),
        CheckConstraint(
            "(status = 'issued') = (issued_at IS NOT NULL) AND (status = 'issued') = (debited_count IS NOT NULL)"
            " AND (status = 'issued') = (debited_amount IS NOT NULL)"
            " AND (status = 'issued') = (current_balance IS NOT NULL)"
            " AND (status = 'issued') = (organization_name IS NOT NULL)"
            " AND (status = 'issued') = (last_refill IS NOT NULL)",
            name="issued_when_complete",
        ),
        CheckConstraint("status <> 'scheduled' OR send_at IS NOT NULL", name="scheduled_for_a_moment"),
        CheckConstraint("(status = 'cancelled') = (cancelled_at IS NOT NULL)", name="cancelled_at_a_moment"),
        CheckConstraint("(status = 'refused') = (refusal IS NOT NULL)", name="refused_with_a_reason"),
        CheckConstraint("hold_days BETWEEN 1 AND 3650", name="hold_days_in_range"),
        CheckConstraint(
            "CASE WHEN issued_at IS NULL THEN held_until IS NULL"
            " ELSE coalesce(held_until > issued_at, hold_days IS NULL) END",
            name="held_until_after_the_issue",
        ),
        CheckConstraint("return_at IS NULL OR held_until IS NOT NULL", name="return_at_of_what_has_an_end"),
        CheckConstraint("debited_count BETWEEN 0 AND recipient_count", name="debited_count_in_range"),
        CheckConstraint(
            "debited_amount = CASE WHEN running_totals IS NULL THEN amount * debited_count"
            " ELSE coalesce(running_totals[debited_count], 0) END",
            name="debited_amount_of_the_debited",
        ),
        CheckConstraint("NOT atomic OR debited_count IN (0, recipient_count)", name="atomic_all_or_none"),
        CheckConstraint("current_balance >= 0", name="current_balance_not_negative"),
        CheckConstraint("(idempotency_key IS NULL) = (idempotency_hash IS NULL)", name="idempotency_key_with_hash"),
        CheckConstraint("char_length(idempotency_key) BETWEEN 1 AND 255", name="idempotency_key_length"),
        # One idempotency key is one batch. Batches without a key are not in this index.
        Index(
            "uq_batches_idempotency_key",
            "organization_id",
            "sandbox",
            "idempotency_key",
            unique=True,
            postgresql_where=text("idempotency_key IS NOT NULL"),
        ),
        # Finds idempotency keys that are old enough to be forgotten. Keys of batches that are not final are not in it.
        Index(
            "ix_batches_idempotency_age",
            _ENDED_AT,
            postgresql_where=text(f"idempotency_key IS NOT NULL AND {_ENDED_AT.text} IS NOT NULL"),
        ),
        # The queue, in order. Only queued batches are in it, so it stays small.
        Index("ix_batches_queued", "organization_id", "id", postgresql_where=text("status = 'queued'")),
        # Scheduled batches by their moment: for the release, and for the limit of each organization and mode.
        Index("ix_batches_due", "send_at", "id", postgresql_where=_SCHEDULED),
        Index("ix_batches_scheduled", "organization_id", "sandbox", "send_at", postgresql_where=_SCHEDULED),
        # Batches that a return must look at, by when.
        Index("ix_batches_return", "return_at", "id", postgresql_where=_HAS_RETURN),
        # The lists (app/pages), newest first by the time that each shows. The unpaid indexes hold only the few batches
        # that the balance did not pay in full.
        Index("ix_batches_created", "organization_id", "sandbox", "created_at", "id"),
        Index("ix_batches_issued", "organization_id", "sandbox", "issued_at", "id", postgresql_where=_ISSUED),
        Index("ix_batches_created_unpaid", "organization_id", "sandbox", "created_at", "id", postgresql_where=_UNPAID),
        Index("ix_batches_issued_unpaid", "organization_id", "sandbox", "issued_at", "id", postgresql_where=_UNPAID),
    )

    id: Mapped[int] = id_column()
    organization_id: Mapped[int] = mapped_column(BigInteger)
    sandbox: Mapped[bool]
    status: Mapped[str] = mapped_column(TEXT, server_default="queued")
    api_key_id: Mapped[int | None] = mapped_column(BigInteger)
    member_id: Mapped[int | None] = mapped_column(BigInteger)
    amount: Mapped[int | None] = mapped_column(BigInteger)
    running_totals: Mapped[list[int] | None] = mapped_column(ARRAY(BigInteger))
    atomic: Mapped[bool]
    label: Mapped[str | None] = mapped_column(TEXT)
    recipient_count: Mapped[int] = mapped_column(Integer)
    emails: Mapped[list[str]] = mapped_column(ARRAY(TEXT))
    email_keys: Mapped[list[str] | None] = mapped_column(ARRAY(TEXT))
    labels: Mapped[list[str | None] | None] = mapped_column(ARRAY(TEXT))
    item_references: Mapped[list[str | None] | None] = mapped_column(ARRAY(TEXT))
    # Not `metadata`, a name that SQLAlchemy reserves. As json, unlike jsonb, it keeps the order of its keys.
    metadata_: Mapped[dict[str, str] | None] = mapped_column("metadata", JSON)
    hold_days: Mapped[int | None] = mapped_column(Integer)
    idempotency_key: Mapped[str | None] = mapped_column(TEXT)
    idempotency_hash: Mapped[bytes | None] = mapped_column(LargeBinary)
    created_at: Mapped[datetime] = created_at_column()
    failures: Mapped[int] = mapped_column(Integer, server_default=text("0"))
    retry_at: Mapped[datetime | None] = moment_column()
    send_at: Mapped[datetime | None] = moment_column()
    cancelled_at: Mapped[datetime | None] = moment_column()
    refusal: Mapped[str | None] = mapped_column(TEXT)
    issued_at: Mapped[datetime | None] = moment_column()
    debited_count: Mapped[int | None] = mapped_column(Integer)
    debited_amount: Mapped[int | None] = mapped_column(BigInteger)
    current_balance: Mapped[int | None] = mapped_column(BigInteger)
    organization_name: Mapped[str | None] = mapped_column(TEXT)
    last_refill: Mapped[int | None] = mapped_column(BigInteger)
    held_until: Mapped[datetime | None] = moment_column()
    return_at: Mapped[datetime | None] = moment_column()


class UnfoldedBatch(Base):
    """A live batch whose credits are not in `folded_balance` yet. The fold that adds them deletes this row."""

    __tablename__ = "unfolded_batches"
    __table_args__ = (
        # Every row lives for seconds, so vacuum must start early, not at a share of a large table.
        {"postgresql_with": {"autovacuum_vacuum_scale_factor": 0, "autovacuum_vacuum_threshold": 5000}},
    )

    batch_id: Mapped[int] = mapped_column(BigInteger, primary_key=True, autoincrement=False)
