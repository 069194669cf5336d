"""The tables. Their constraints refuse what the code forbids, each under a name that says what it guards."""

from datetime import datetime
from decimal import Decimal

from sqlalchemy import (
    BigInteger,
    CheckConstraint,
    ForeignKey,
    Identity,
    Index,
    Integer,
    LargeBinary,
    MetaData,
    Numeric,
    PrimaryKeyConstraint,
    Text,
    UniqueConstraint,
    false,
    func,
    text,
)
from sqlalchemy.dialects.postgresql import ARRAY, TIMESTAMP
from sqlalchemy.orm import DeclarativeBase, Mapped, MappedColumn, mapped_column

# A constraint that breaks is reported by its name; these make the names say what they guard.
NAMING_CONVENTION = {
    "ix": "ix_%(table_name)s_%(column_0_N_name)s",
    "uq": "uq_%(table_name)s_%(column_0_N_name)s",
    "ck": "ck_%(table_name)s_%(constraint_name)s",
    "fk": "fk_%(table_name)s_%(column_0_name)s",
    "pk": "pk_%(table_name)s",
}


class Base(DeclarativeBase):
    metadata = MetaData(naming_convention=NAMING_CONVENTION)


def _id() -> MappedColumn[int]:
    return mapped_column(BigInteger, Identity(always=True), primary_key=True)


def _points(*, default: int | None = None) -> MappedColumn[int]:
    return mapped_column(BigInteger, server_default=None if default is None else text(str(default)))


def _moment() -> MappedColumn[datetime]:
    return mapped_column(TIMESTAMP(timezone=True), server_default=func.clock_timestamp())


def _later() -> MappedColumn[datetime | None]:
    return mapped_column(TIMESTAMP(timezone=True))


def _organization() -> MappedColumn[int]:
    return mapped_column(BigInteger, ForeignKey("organizations.id"))


_ISSUED = text("issued_at IS NOT NULL")
_UNPAID = text("debited_count < recipient_count")


class Organization(Base):
    """Who issues. Two balances, live and sandbox, each with its `last_refill`: the balance right after it."""

    __tablename__ = "organizations"
    __table_args__ = (
        CheckConstraint("balance >= 0", name="balance_not_negative"),
        CheckConstraint("sandbox_balance >= 0", name="sandbox_balance_not_negative"),
        CheckConstraint("char_length(name) BETWEEN 1 AND 255", name="name_length"),
        # The row is updated by every drain; free space in its page keeps those updates off the index.
        {"postgresql_with": {"fillfactor": 50}},
    )

    id: Mapped[int] = _id()
    name: Mapped[str] = mapped_column(Text)
    is_disabled: Mapped[bool] = mapped_column(server_default=false())
    is_suspended: Mapped[bool] = mapped_column(server_default=false())
    balance: Mapped[int] = _points(default=0)
    last_refill: Mapped[int] = _points(default=0)
    sandbox_balance: Mapped[int] = _points(default=0)
    sandbox_last_refill: Mapped[int] = _points(default=0)
    sandbox_start_balance: Mapped[int] = _points(default=0)
    created_at: Mapped[datetime] = _moment()


class ApiKey(Base):
    """What a caller proves itself with: the SHA-256 of a key, for one organization and one mode."""

    __tablename__ = "api_keys"
    __table_args__ = (
        UniqueConstraint("hash"),
        CheckConstraint("octet_length(hash) = 32", name="hash_is_sha256"),
        Index(None, "organization_id"),
    )

    id: Mapped[int] = _id()
    organization_id: Mapped[int] = _organization()
    sandbox: Mapped[bool]
    hash: Mapped[bytes] = mapped_column(LargeBinary)
    start: Mapped[str] = mapped_column(Text)
    created_at: Mapped[datetime] = _moment()
    last_used_at: Mapped[datetime | None] = _later()
    revoked_at: Mapped[datetime | None] = _later()


class User(Base):
    """An account that points are credited to, found by the normalised form of its address.

    `folded_balance` holds the credits of all batches but those in `unfolded_batches`; `app.users.find`
    adds these. It is numeric, because many organizations together may credit more than 64 bits.
    """

    __tablename__ = "users"
    __table_args__ = (
        UniqueConstraint("email_key"),
        # Where the sweep looks for registrations that crossed an issue.
        Index(None, "created_at"),
        CheckConstraint("folded_balance >= 0", name="folded_balance_not_negative"),
        # A fold updates many of these rows; room in their pages makes that a quarter cheaper.
        {"postgresql_with": {"fillfactor": 70}},
    )

    id: Mapped[int] = _id()
    email: Mapped[str] = mapped_column(Text)
    email_key: Mapped[str] = mapped_column(Text)
    first_name: Mapped[str] = mapped_column(Text)
    last_name: Mapped[str] = mapped_column(Text)
    folded_balance: Mapped[Decimal] = mapped_column(Numeric, server_default=text("0"))
    created_at: Mapped[datetime] = _moment()


class Batch(Base):
    """One accepted send: its recipients in request order, and what became of them.

    `email_keys` is null when every address is its own normalised form. There is no foreign key to the
    organization: its check would lock the organization's row in each INSERT of the front end. The
    statement that accepts a batch joins the row instead, and organizations are never deleted.

    Null until issued: everything from `issued_at` down. `organization_name` and `last_refill` keep
    the organization as it was then, so that an answer can be given again exactly as it was.
    """

    __tablename__ = "batches"
    __table_args__ = (
        CheckConstraint("status IN ('queued', 'issued', 'refused')", name="status_known"),
        CheckConstraint("amount > 0", name="amount_positive"),
        CheckConstraint(
            "recipient_count BETWEEN 1 AND 131072 AND cardinality(emails) = recipient_count"
            " AND (email_keys IS NULL OR cardinality(email_keys) = recipient_count)",
            name="recipients_counted",
        ),
        CheckConstraint("char_length(label) <= 255", name="label_length"),
        CheckConstraint(
            "(status = 'issued') = (issued_at IS NOT NULL) AND (status = 'issued') = (debited_count IS NOT NULL)"
            " AND (status = 'issued') = (current_balance IS NOT NULL)"
            " AND (status = 'issued') = (organization_name IS NOT NULL)"
            " AND (status = 'issued') = (last_refill IS NOT NULL)",
            name="issued_when_complete",
        ),
        CheckConstraint("(status = 'refused') = (refusal IS NOT NULL)", name="refused_with_a_reason"),
        CheckConstraint("debited_count BETWEEN 0 AND recipient_count", name="debited_count_in_range"),
        CheckConstraint("NOT atomic OR debited_count IN (0, recipient_count)", name="atomic_all_or_none"),
        CheckConstraint("current_balance >= 0", name="current_balance_not_negative"),
        CheckConstraint("(idempotency_key IS NULL) = (idempotency_hash IS NULL)", name="idempotency_key_with_hash"),
        CheckConstraint("char_length(idempotency_key) BETWEEN 1 AND 255", name="idempotency_key_length"),
        # The promise that one idempotency key is one batch; most batches have none and take no room here.
        Index(
            "uq_batches_idempotency_key",
            "organization_id",
            "sandbox",
            "idempotency_key",
            unique=True,
            postgresql_where=text("idempotency_key IS NOT NULL"),
        ),
        # Where keys that are old enough to be forgotten are found.
        Index("ix_batches_idempotency_age", "created_at", postgresql_where=text("idempotency_key IS NOT NULL")),
        # The queue itself, in order. It holds only what is queued, so it stays small for ever.
        Index("ix_batches_queued", "organization_id", "id", postgresql_where=text("status = 'queued'")),
        # The lists (app/pages), each in its own order: newest first by the time that it shows. The batches that a
        # balance did not pay whole are few; one that was paid takes no room in the indexes of the unpaid.
        Index("ix_batches_created", "organization_id", "sandbox", "created_at", "id"),
        Index("ix_batches_issued", "organization_id", "sandbox", "issued_at", "id", postgresql_where=_ISSUED),
        Index("ix_batches_created_unpaid", "organization_id", "sandbox", "created_at", "id", postgresql_where=_UNPAID),
        Index("ix_batches_issued_unpaid", "organization_id", "sandbox", "issued_at", "id", postgresql_where=_UNPAID),
    )

    id: Mapped[int] = _id()
    organization_id: Mapped[int] = mapped_column(BigInteger)
    sandbox: Mapped[bool]
    status: Mapped[str] = mapped_column(Text, server_default="queued")
    amount: Mapped[int] = _points()
    atomic: Mapped[bool]
    label: Mapped[str | None] = mapped_column(Text)
    recipient_count: Mapped[int] = mapped_column(Integer)
    emails: Mapped[list[str]] = mapped_column(ARRAY(Text))
    email_keys: Mapped[list[str] | None] = mapped_column(ARRAY(Text))
    idempotency_key: Mapped[str | None] = mapped_column(Text)
    idempotency_hash: Mapped[bytes | None] = mapped_column(LargeBinary)
    created_at: Mapped[datetime] = _moment()
    failures: Mapped[int] = mapped_column(Integer, server_default=text("0"))
    retry_at: Mapped[datetime | None] = _later()
    refusal: Mapped[str | None] = mapped_column(Text)
    issued_at: Mapped[datetime | None] = _later()
    debited_count: Mapped[int | None] = mapped_column(Integer)
    current_balance: Mapped[int | None] = mapped_column(BigInteger)
    organization_name: Mapped[str | None] = mapped_column(Text)
    last_refill: Mapped[int | None] = mapped_column(BigInteger)


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
    balance: Mapped[int] = _points()
    user_id: Mapped[int | None] = mapped_column(BigInteger)
    claimed_at: Mapped[datetime | None] = _later()
    position: Mapped[int] = mapped_column(Integer, autoincrement=False)
    sandbox: Mapped[bool]
    debited: Mapped[bool]
    credited: Mapped[bool]
    email: Mapped[str] = mapped_column(Text)
    email_key: Mapped[str | None] = mapped_column(Text)


class UnfoldedBatch(Base):
    """A live batch whose credits no `folded_balance` holds yet. A fold deletes it in the transaction that adds them."""

    __tablename__ = "unfolded_batches"
    __table_args__ = (
        # Every row lives for seconds: vacuum must not wait until a share of a large table is dead.
        {"postgresql_with": {"autovacuum_vacuum_scale_factor": 0, "autovacuum_vacuum_threshold": 5000}},
    )

    batch_id: Mapped[int] = mapped_column(BigInteger, primary_key=True, autoincrement=False)


class Refill(Base):
    """Points put into a balance. Only a sandbox may lose some: a reset takes it back to its start."""

    __tablename__ = "refills"
    __table_args__ = (
        CheckConstraint("amount > 0 OR (sandbox AND amount <> 0)", name="amount_positive_unless_sandbox"),
        CheckConstraint("balance >= 0", name="balance_not_negative"),
        Index(None, "organization_id", "sandbox"),
    )

    id: Mapped[int] = _id()
    organization_id: Mapped[int] = _organization()
    sandbox: Mapped[bool]
    amount: Mapped[int] = _points()
    balance: Mapped[int] = _points()
    created_at: Mapped[datetime] = _moment()
