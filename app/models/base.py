"""What all tables share: their metadata, how constraints are named, and the kinds of columns."""

from datetime import datetime

from sqlalchemy import BigInteger, ForeignKey, Identity, MetaData, Text, func, text
from sqlalchemy.dialects.postgresql import TIMESTAMP
from sqlalchemy.orm import DeclarativeBase, MappedColumn, mapped_column

# PostgreSQL reports a violated constraint by its name, so the name says what it guards.
NAMING_CONVENTION = {
    "ix": "ix_%(table_name)s_%(column_0_N_name)s",
    "uq": "uq_%(table_name)s_%(column_0_N_name)s",
    "ck": "ck_%(table_name)s_%(constraint_name)s",
    "fk": "fk_%(table_name)s_%(column_0_name)s",
    "pk": "pk_%(table_name)s",
}


# Compared byte by byte, not by the database's locale: the order of a locale may change with the server's image.
TEXT = Text(collation="C")


class Base(DeclarativeBase):
    metadata = MetaData(naming_convention=NAMING_CONVENTION)


def id_column() -> MappedColumn[int]:
    return mapped_column(BigInteger, Identity(always=True), primary_key=True)


def points_column(*, default: int | None = None) -> MappedColumn[int]:
    return mapped_column(BigInteger, server_default=None if default is None else text(str(default)))


def created_at_column() -> MappedColumn[datetime]:
    return mapped_column(TIMESTAMP(timezone=True), server_default=func.clock_timestamp())


def moment_column() -> MappedColumn[datetime | None]:
    """Make the column of a moment that is null until it has come."""
    return mapped_column(TIMESTAMP(timezone=True))


def organization_id_column() -> MappedColumn[int]:
    return mapped_column(BigInteger, ForeignKey("organizations.id"))
