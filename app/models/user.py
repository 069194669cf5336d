"""Users: the accounts that points are credited to."""

from datetime import datetime
from decimal import Decimal

from sqlalchemy import CheckConstraint, Index, Numeric, UniqueConstraint, text
from sqlalchemy.orm import Mapped, mapped_column

from app.models.base import TEXT, Base, created_at_column, id_column


class User(Base):
    """An account, found by the normalised form of its address.

    `folded_balance` holds the credits of all batches except those in `unfolded_batches`; `app.users.find` adds the
    rest. It is numeric, because many organizations together may credit more than fits in 64 bits.
    """

    __tablename__ = "users"
    __table_args__ = (
        UniqueConstraint("email_key"),
        # Finds the users who registered lately, for the search for crossed registrations.
        Index(None, "created_at"),
        CheckConstraint("folded_balance >= 0", name="folded_balance_not_negative"),
        # A fold updates many of these rows; free space in their pages makes that a quarter cheaper.
        {"postgresql_with": {"fillfactor": 70}},
    )

    id: Mapped[int] = id_column()
    email: Mapped[str] = mapped_column(TEXT)
    email_key: Mapped[str] = mapped_column(TEXT)
    first_name: Mapped[str] = mapped_column(TEXT)
    last_name: Mapped[str] = mapped_column(TEXT)
    folded_balance: Mapped[Decimal] = mapped_column(Numeric, server_default=text("0"))
    created_at: Mapped[datetime] = created_at_column()
