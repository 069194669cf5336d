"""Reversals: points taken back, and how many from each transaction."""

from datetime import datetime

from sqlalchemy import BigInteger, CheckConstraint, Index, Integer, LargeBinary, PrimaryKeyConstraint, false, text
from sqlalchemy.dialects.postgresql import ARRAY
from sqlalchemy.orm import Mapped, mapped_column

from app.models.base import TEXT, Base, created_at_column, moment_column

_HAS_KEY = text("idempotency_key IS NOT NULL")


class Reversal(Base):
    """One accepted request to take points back: of a whole batch, or of transactions in request order.

    Ids come from the sequence of the batches, so that one order by id holds across sends and reversals. `amount` is
    what to take from each transaction; null: all that is left of it. The columns from `done_at` on are null until the
    reversal is done. A return (`is_return`) is made by the service: it takes the points of the batch that were held for
    too long, and is done when it is written.

    As with a batch, there is no foreign key to the organization.
    """

    __tablename__ = "reversals"
    __table_args__ = (
        CheckConstraint("status IN ('queued', 'done', 'refused')", name="status_known"),
        CheckConstraint("num_nonnulls(api_key_id, member_id) <= 1", name="asked_by_one"),
        CheckConstraint("amount > 0", name="amount_positive"),
        CheckConstraint("char_length(reason) BETWEEN 1 AND 255", name="reason_length"),
        CheckConstraint("char_length(idempotency_key) BETWEEN 1 AND 255", name="idempotency_key_length"),
        CheckConstraint("reversed_amount >= 0", name="reversed_amount_not_negative"),
        CheckConstraint("current_balance >= 0", name="current_balance_not_negative"),
        CheckConstraint(
            "(batch_id IS NULL) = (transaction_ids IS NOT NULL) AND cardinality(transaction_ids) BETWEEN 1 AND 131072",
            name="of_a_batch_or_of_transactions",
        ),
        CheckConstraint("(idempotency_key IS NULL) = (idempotency_hash IS NULL)", name="idempotency_key_with_hash"),
        CheckConstraint(
            "NOT is_return OR (status = 'done' AND batch_id IS NOT NULL AND amount IS NULL AND NOT atomic"
            " AND reversed_amount > 0)",
            name="return_of_a_batch_done",
        ),
        CheckConstraint("(status = 'refused') = (refusal IS NOT NULL)", name="refused_with_a_reason"),
        CheckConstraint(
            "(status = 'done') = (done_at IS NOT NULL) AND (status = 'done') = (reversed_amount IS NOT NULL)"
            " AND (status = 'done') = (current_balance IS NOT NULL)",
            name="done_when_complete",
        ),
        Index(
            "uq_reversals_idempotency_key",
            "organization_id",
            "sandbox",
            "idempotency_key",
            unique=True,
            postgresql_where=_HAS_KEY,
        ),
        Index("ix_reversals_idempotency_age", "created_at", postgresql_where=_HAS_KEY),
        # Queued reversals, in order. Each drain looks here, and the index is nearly always empty.
        Index("ix_reversals_queued", "organization_id", "id", postgresql_where=text("status = 'queued'")),
        Index("ix_reversals_created", "organization_id", "sandbox", "created_at", "id"),
    )

    id: Mapped[int] = mapped_column(
        BigInteger, primary_key=True, autoincrement=False, server_default=text("nextval('batches_id_seq')")
    )
    organization_id: Mapped[int] = mapped_column(BigInteger)
    sandbox: Mapped[bool]
    status: Mapped[str] = mapped_column(TEXT, server_default="queued")
    api_key_id: Mapped[int | None] = mapped_column(BigInteger)
    member_id: Mapped[int | None] = mapped_column(BigInteger)
    batch_id: Mapped[int | None] = mapped_column(BigInteger)
    transaction_ids: Mapped[list[int] | None] = mapped_column(ARRAY(BigInteger))
    amount: Mapped[int | None] = mapped_column(BigInteger)
    atomic: Mapped[bool]
    reason: Mapped[str] = mapped_column(TEXT)
    is_return: Mapped[bool] = mapped_column(server_default=false())
    idempotency_key: Mapped[str | None] = mapped_column(TEXT)
    idempotency_hash: Mapped[bytes | None] = mapped_column(LargeBinary)
    created_at: Mapped[datetime] = created_at_column()
    failures: Mapped[int] = mapped_column(Integer, server_default=text("0"))
    retry_at: Mapped[datetime | None] = moment_column()
    refusal: Mapped[str | None] = mapped_column(TEXT)
    done_at: Mapped[datetime | None] = moment_column()
    reversed_amount: Mapped[int | None] = mapped_column(BigInteger)
    current_balance: Mapped[int | None] = mapped_column(BigInteger)


class ReversalEntry(Base):
    """What a reversal took from one transaction: `reversed` points, or 0 and a `code` for the reason.

    `position` counts from 0 in request order. `reversed` may be 0 without a `code`: an atomic reversal that cannot take
    everything takes nothing.
    """

    __tablename__ = "reversal_entries"
    __table_args__ = (
        PrimaryKeyConstraint("reversal_id", "position"),
        CheckConstraint("code IN ('not_debited', 'already_reversed', 'more_than_left')", name="code_known"),
        CheckConstraint("reversed >= 0 AND (code IS NULL OR reversed = 0)", name="reversed_unless_a_code"),
    )

    # Wide columns first, as in a transaction.
    reversal_id: Mapped[int] = mapped_column(BigInteger, autoincrement=False)
    batch_id: Mapped[int] = mapped_column(BigInteger)
    reversed: Mapped[int] = mapped_column(BigInteger)
    position: Mapped[int] = mapped_column(Integer, autoincrement=False)
    transaction_position: Mapped[int] = mapped_column(Integer)
    code: Mapped[str | None] = mapped_column(TEXT)
