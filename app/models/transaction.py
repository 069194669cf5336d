"""One row for each recipient of an issued batch."""

from datetime import datetime

from sqlalchemy import BigInteger, CheckConstraint, Index, Integer, PrimaryKeyConstraint, text
from sqlalchemy.orm import Mapped, mapped_column

from app.models.base import TEXT, Base, moment_column, points_column

# A run of 16,384 batch ids. A batch draws one more for each 16 of its recipients (`app.acceptance`), so an era holds
# about 262,144 transactions.
ERA = "((batch_id >> 14)::int)"

# An address within an organization and mode. Two may have one hash, so the address itself is compared as well.
ADDRESS_HASH = "((hashtextextended(coalesce(email_key, email), organization_id * 2 + sandbox::int) >> 32)::int)"

# The SQL function `transaction_id`, written out where an index has it.
TRANSACTION_ID = "(batch_id * 131072 + position)"


class Transaction(Base):
    """One recipient of a batch. What is equal for the whole batch (amount, label, time) stands there.

    `position` counts from 0 in request order. `balance` is the organization's right after this
    transaction. A held transaction is debited and not credited; once claimed, `claimed_at` is set.
    `email_key` is null when the address is its own normalised form. Two more things that callers see
    have no column: `allocated`, which by the contract's table of flags always equals `credited`, and
    `id`, which the SQL function `transaction_id` makes of the batch and the position.

    No foreign keys: each would be a look-up a row. The one statement that writes these rows joins the
    batch and the user that they name, neither is ever deleted, and the audit proves both.
    """

    __tablename__ = "transactions"
    __table_args__ = (
        PrimaryKeyConstraint("batch_id", "position"),
        CheckConstraint("position BETWEEN 0 AND 131071", name="position_in_range"),
        CheckConstraint("balance >= 0", name="balance_not_negative"),
        CheckConstraint(
            "CASE WHEN debited THEN credited = (user_id IS NOT NULL) ELSE NOT credited END",
            name="debited_is_credited_or_held",
        ),
        CheckConstraint("claimed_at IS NULL OR (credited AND NOT sandbox)", name="claimed_only_if_live_and_credited"),
        # What waits for an account to be registered under its address, and nothing else.
        Index(
            "ix_transactions_held",
            text("coalesce(email_key, email)"),
            postgresql_where=text("debited AND NOT credited AND NOT sandbox"),
        ),
        # The lists of one address (app/pages/addresses.py): 16 bytes a row, however long it is. Era by era: hashes
        # lie anywhere, and 10,000 of them would touch as many pages of an index that grows for ever.
        Index("ix_transactions_address", text(ERA), text(ADDRESS_HASH), text(TRANSACTION_ID)),
    )

    # Wide columns first: without padding, a row is a tenth smaller.
    organization_id: Mapped[int] = mapped_column(BigInteger)
    batch_id: Mapped[int] = mapped_column(BigInteger, autoincrement=False)
    balance: Mapped[int] = points_column()
    user_id: Mapped[int | None] = mapped_column(BigInteger)
    claimed_at: Mapped[datetime | None] = moment_column()
    position: Mapped[int] = mapped_column(Integer, autoincrement=False)
    sandbox: Mapped[bool]
    debited: Mapped[bool]
    credited: Mapped[bool]
    email: Mapped[str] = mapped_column(TEXT)
    email_key: Mapped[str | None] = mapped_column(TEXT)
