"""Transactions: one row for each recipient of an issued batch."""

from datetime import datetime

from sqlalchemy import BigInteger, CheckConstraint, Index, Integer, PrimaryKeyConstraint, text
from sqlalchemy.orm import Mapped, mapped_column

from app.models.base import TEXT, Base, moment_column, points_column

# A range of 16,384 batch ids. A batch draws one more id for each 16 recipients (`app.batches.accept`), so a range holds
# about 262,144 transactions.
ID_RANGE = "((batch_id >> 14)::int)"

# A hash of organization, mode and address. Hashes may collide, so queries compare the address as well.
ADDRESS_HASH = "((hashtextextended(coalesce(email_key, email), organization_id * 2 + sandbox::int) >> 32)::int)"

# The body of the SQL function `transaction_id`, for the index.
TRANSACTION_ID = "(batch_id * 131072 + position)"


class Transaction(Base):
    """One recipient of a batch. Values that are equal for the whole batch (the time) are in its row. `amount` and
    `label` are null where they are the batch's.

    `position` counts from 0 in request order. `balance` is the organization's balance right after this transaction.
    A held transaction is debited and not credited; a claim sets `claimed_at`. `email_key` is null when the address is
    its own normalised form. Two fields of the answer have no column: `allocated` always equals `credited` (the
    contract's table of flags), and the SQL function `transaction_id` makes `id` from the batch and the position.

    `points_left` is null until points are taken back, and then what is left of the amount: a trigger only lets it fall,
    to 0 at the lowest. The flags stay as they were. `held_until` is null until it is extended, and then replaces the
    batch's. `returned_at` is when its points went back because they were held for too long; otherwise null.

    There are no foreign keys: each would cost a look-up per row. The only statement that writes these rows joins the
    batch and the user, neither is ever deleted, and the audit checks both.
    """

    __tablename__ = "transactions"
    __table_args__ = (
        PrimaryKeyConstraint("batch_id", "position"),
        CheckConstraint("position BETWEEN 0 AND 131071", name="position_in_range"),
        CheckConstraint("balance >= 0", name="balance_not_negative"),
        CheckConstraint("amount > 0", name="amount_positive"),
        CheckConstraint(
            "CASE WHEN debited THEN credited = (user_id IS NOT NULL) ELSE NOT credited END",
            name="debited_is_credited_or_held",
        ),
        CheckConstraint("claimed_at IS NULL OR (credited AND NOT sandbox)", name="claimed_only_if_live_and_credited"),
        CheckConstraint(
            "points_left IS NULL OR (debited AND points_left >= 0 AND (amount IS NULL OR points_left < amount))",
            name="points_left_of_the_debited",
        ),
        CheckConstraint("held_until IS NULL OR debited", name="held_until_of_the_debited"),
        CheckConstraint(
            "returned_at IS NULL OR (debited AND NOT credited AND points_left IS NOT DISTINCT FROM 0)",
            name="returned_whole_and_never_credited",
        ),
        # Only held transactions, by address, for claims. If all points were taken back, nothing is held.
        Index(
            "ix_transactions_held",
            text("coalesce(email_key, email)"),
            postgresql_where=text("debited AND NOT credited AND NOT sandbox AND points_left IS DISTINCT FROM 0"),
        ),
        # The lists of one address (app/pages/addresses.py): 16 bytes per row for any length of the address. The id
        # range comes first: otherwise 10,000 hashes would touch as many pages of an index that grows without end.
        Index("ix_transactions_address", text(ID_RANGE), text(ADDRESS_HASH), text(TRANSACTION_ID)),
        # A reference is unique in its batch; the lists of one reference (app/pages/references.py) read this index too.
        Index(
            "uq_transactions_reference",
            "organization_id",
            "sandbox",
            "reference",
            "batch_id",
            unique=True,
            postgresql_where=text("reference IS NOT NULL"),
        ),
    )

    # Wide columns first: without padding, a row is a tenth smaller.
    organization_id: Mapped[int] = mapped_column(BigInteger)
    batch_id: Mapped[int] = mapped_column(BigInteger, autoincrement=False)
    balance: Mapped[int] = points_column()
    user_id: Mapped[int | None] = mapped_column(BigInteger)
    claimed_at: Mapped[datetime | None] = moment_column()
    held_until: Mapped[datetime | None] = moment_column()
    returned_at: Mapped[datetime | None] = moment_column()
    position: Mapped[int] = mapped_column(Integer, autoincrement=False)
    sandbox: Mapped[bool]
    debited: Mapped[bool]
    credited: Mapped[bool]
    email: Mapped[str] = mapped_column(TEXT)
    email_key: Mapped[str | None] = mapped_column(TEXT)
    amount: Mapped[int | None] = mapped_column(BigInteger)
    label: Mapped[str | None] = mapped_column(TEXT)
    reference: Mapped[str | None] = mapped_column(TEXT)
    points_left: Mapped[int | None] = mapped_column(BigInteger)
