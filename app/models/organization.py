"""Organizations, their API keys and their refills."""

from datetime import datetime

from sqlalchemy import BigInteger, CheckConstraint, Index, LargeBinary, UniqueConstraint, false
from sqlalchemy.orm import Mapped, mapped_column

from app.models.base import (
    TEXT,
    Base,
    created_at_column,
    id_column,
    moment_column,
    organization_id_column,
    points_column,
)


class Organization(Base):
    """An organization, with a live and a sandbox balance; `last_refill` is the balance right after the last refill.

    `held_days` is how long points may be held if the send has no `hold_days`; null: without end.
    An event reports when the live balance falls below `low_balance`; null: never.
    """

    __tablename__ = "organizations"
    __table_args__ = (
        CheckConstraint("balance >= 0", name="balance_not_negative"),
        CheckConstraint("sandbox_balance >= 0", name="sandbox_balance_not_negative"),
        CheckConstraint("char_length(name) BETWEEN 1 AND 255", name="name_length"),
        CheckConstraint("held_days BETWEEN 1 AND 3650", name="held_days_in_range"),
        CheckConstraint("low_balance > 0", name="low_balance_positive"),
        # Every drain updates this row; free space in its page keeps the updates out of the index.
        {"postgresql_with": {"fillfactor": 50}},
    )

    id: Mapped[int] = id_column()
    name: Mapped[str] = mapped_column(TEXT)
    is_disabled: Mapped[bool] = mapped_column(server_default=false())
    is_suspended: Mapped[bool] = mapped_column(server_default=false())
    balance: Mapped[int] = points_column(default=0)
    last_refill: Mapped[int] = points_column(default=0)
    sandbox_balance: Mapped[int] = points_column(default=0)
    sandbox_last_refill: Mapped[int] = points_column(default=0)
    sandbox_start_balance: Mapped[int] = points_column(default=0)
    held_days: Mapped[int | None]
    low_balance: Mapped[int | None] = mapped_column(BigInteger)
    created_at: Mapped[datetime] = created_at_column()


class ApiKey(Base):
    """An API key of one organization and mode, stored as its SHA-256."""

    __tablename__ = "api_keys"
    __table_args__ = (
        UniqueConstraint("hash"),
        CheckConstraint("octet_length(hash) = 32", name="hash_is_sha256"),
        Index(None, "organization_id"),
    )

    id: Mapped[int] = id_column()
    organization_id: Mapped[int] = organization_id_column()
    sandbox: Mapped[bool]
    hash: Mapped[bytes] = mapped_column(LargeBinary)
    start: Mapped[str] = mapped_column(TEXT)
    created_at: Mapped[datetime] = created_at_column()
    last_used_at: Mapped[datetime | None] = moment_column()
    revoked_at: Mapped[datetime | None] = moment_column()


class Refill(Base):
    """Points added to a balance. Only a sandbox reset may take some away."""

    __tablename__ = "refills"
    __table_args__ = (
        CheckConstraint("amount > 0 OR (sandbox AND amount <> 0)", name="amount_positive_unless_sandbox"),
        CheckConstraint("balance >= 0", name="balance_not_negative"),
        CheckConstraint("char_length(reference) BETWEEN 1 AND 128", name="reference_length"),
        UniqueConstraint("organization_id", "reference"),
        Index(None, "organization_id", "sandbox"),
    )

    id: Mapped[int] = id_column()
    organization_id: Mapped[int] = organization_id_column()
    sandbox: Mapped[bool]
    amount: Mapped[int] = points_column()
    balance: Mapped[int] = points_column()
    reference: Mapped[str | None] = mapped_column(TEXT)
    created_at: Mapped[datetime] = created_at_column()
