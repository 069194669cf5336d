"""The rival's tables and its connection to PostgreSQL."""

import os
from datetime import UTC, datetime
from functools import lru_cache
from typing import ClassVar

from sqlalchemy import BigInteger, Engine, ForeignKey, create_engine
from sqlalchemy.orm import DeclarativeBase, Mapped, mapped_column, relationship


class Base(DeclarativeBase):
    type_annotation_map: ClassVar = {int: BigInteger}


class Organization(Base):
    __tablename__ = "rival_organizations"

    id: Mapped[int] = mapped_column(primary_key=True)
    api_key: Mapped[str] = mapped_column(unique=True)
    balance: Mapped[int]


class User(Base):
    __tablename__ = "rival_users"

    id: Mapped[int] = mapped_column(primary_key=True)
    email: Mapped[str] = mapped_column(unique=True)
    balance: Mapped[int] = mapped_column(default=0)


class Transaction(Base):
    __tablename__ = "rival_transactions"

    id: Mapped[int] = mapped_column(primary_key=True)
    organization_id: Mapped[int] = mapped_column(ForeignKey(Organization.id), index=True)
    user_id: Mapped[int | None] = mapped_column(ForeignKey(User.id), index=True)
    email: Mapped[str]
    amount: Mapped[int]
    balance: Mapped[int]
    debited: Mapped[bool]
    credited: Mapped[bool]
    created_at: Mapped[datetime] = mapped_column(default=lambda: datetime.now(UTC).replace(tzinfo=None))
    user: Mapped[User | None] = relationship()


@lru_cache(maxsize=1)
def engine() -> Engine:
    """Return this process's engine, made at first use and so after each fork."""
    url = os.environ["DATABASE_URL"].replace("postgresql://", "postgresql+psycopg://", 1)
    return create_engine(url, pool_size=10, max_overflow=0)
