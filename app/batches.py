"""Batches: writing one that is accepted, and reading back what became of it."""

import hashlib
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any, NamedTuple

from sqlalchemy import Connection, select, text
from sqlalchemy.dialects.postgresql import insert

from app.errors import IdempotencyKeyReused
from app.models import Batch

QUEUED, ISSUED, REFUSED = "queued", "issued", "refused"

# The contract promises 30; a day more, so that no clock's hour makes it less.
IDEMPOTENCY_KEY_KEPT_DAYS = 31


@dataclass(frozen=True, kw_only=True, slots=True)
class IssueRequest:
    """A valid request to issue points.

    `emails` are the addresses as sent (trimmed), in order; `email_keys` their normalised forms at the
    same places; `amount` is in points, for each recipient.
    """

    emails: Sequence[str]
    email_keys: Sequence[str]
    amount: int
    atomic: bool
    label: str | None

    def meaning(self) -> bytes:
        """Return the 32 bytes that are equal for two requests that mean the same, however they are written."""
        digest = hashlib.sha256(f"{self.amount} {self.atomic:d} ".encode())
        digest.update(b"-" if self.label is None else b"+" + self.label.encode())
        for key in self.email_keys:
            digest.update(b"\0" + key.encode())  # Neither a label nor an address can hold a NUL.
        return digest.digest()


@dataclass(frozen=True, kw_only=True, slots=True)
class Acceptance:
    """What became of a send at the front: a batch of its own, or (`existed`) the one its key already names."""

    batch_id: int
    status: str
    existed: bool


class BatchRow(NamedTuple):
    """A batch without its recipients; the fields are those of `app.models.Batch`."""

    id: int
    organization_id: int
    sandbox: bool
    status: str
    amount: int
    label: str | None
    created_at: datetime
    refusal: str | None
    issued_at: datetime | None
    debited_count: int | None
    current_balance: int | None
    organization_name: str | None
    last_refill: int | None
    organization_created_at: datetime


class TransactionRow(NamedTuple):
    """One transaction with its user, if it has one; the rest of what it shows stands on its batch.

    `claimed` tells that it was held when it was issued, and credited later.
    """

    id: int
    email: str
    balance: int
    debited: bool
    credited: bool
    claimed: bool
    user_id: int | None
    first_name: str | None
    last_name: str | None


def find_by_idempotency_key(
    connection: Connection,
    organization_id: int,
    request: IssueRequest,
    *,
    sandbox: bool,
    idempotency_key: str,
) -> Acceptance | None:
    """Return the batch that an idempotency key names, or None while it is unused.

    Raises:
        IdempotencyKeyReused: the key was used with a request of another meaning.
    """
    row = connection.execute(
        select(Batch.id, Batch.status, Batch.idempotency_hash).where(
            Batch.organization_id == organization_id,
            Batch.sandbox == sandbox,
            Batch.idempotency_key == idempotency_key,
        )
    ).one_or_none()
    if row is None:
        return None
    if row.idempotency_hash != request.meaning():
        raise IdempotencyKeyReused
    return Acceptance(batch_id=row.id, status=row.status, existed=True)


def accept(
    connection: Connection,
    organization_id: int,
    request: IssueRequest,
    *,
    sandbox: bool,
    idempotency_key: str | None,
) -> int | None:
    """Write a queued batch and return its id. From the commit on it cannot be lost.

    Returns None when another request took the idempotency key in the same moment: PostgreSQL made
    this one wait for the other's commit, so the batch that now holds the key can be found.
    """
    statement = (
        insert(Batch)
        .values(
            organization_id=organization_id,
            sandbox=sandbox,
            amount=request.amount,
            atomic=request.atomic,
            label=request.label,
            recipient_count=len(request.emails),
            emails=request.emails,
            email_keys=None if request.email_keys == request.emails else request.email_keys,
            idempotency_key=idempotency_key,
            idempotency_hash=None if idempotency_key is None else request.meaning(),
        )
        .on_conflict_do_nothing(
            index_elements=[Batch.organization_id, Batch.sandbox, Batch.idempotency_key],
            index_where=Batch.idempotency_key.is_not(None),
        )
    )
    return connection.execute(statement.returning(Batch.id)).scalar_one_or_none()


def find(connection: Connection, batch_id: int, *, organization_id: int, sandbox: bool) -> BatchRow | None:
    """Return one batch of an organization and mode; another's is None, like one that does not exist."""
    parameters = {"id": batch_id, "organization_id": organization_id, "sandbox": sandbox}
    row: Any = connection.execute(_FIND, parameters).one_or_none()
    return None if row is None else BatchRow(*row)


_FIND = text("""
    SELECT b.id, b.organization_id, b.sandbox, b.status, b.amount, b.label, b.created_at, b.refusal, b.issued_at,
           b.debited_count, b.current_balance, b.organization_name, b.last_refill, o.created_at
    FROM batches b JOIN organizations o ON o.id = b.organization_id
    WHERE b.id = :id AND b.organization_id = :organization_id AND b.sandbox = :sandbox
""")


def transactions_of(connection: Connection, batch_id: int) -> list[TransactionRow]:
    """Return the transactions of a batch in request order."""
    return [TransactionRow(*row) for row in connection.execute(_TRANSACTIONS, {"batch_id": batch_id})]


_TRANSACTIONS = text("""
    SELECT transaction_id(t.batch_id, t.position), t.email, t.balance, t.debited, t.credited, t.claimed_at IS NOT NULL,
           u.id, u.first_name, u.last_name
    FROM transactions t LEFT JOIN users u ON u.id = t.user_id
    WHERE t.batch_id = :batch_id
    ORDER BY t.position
""")


def final_among(connection: Connection, batch_ids: Sequence[int]) -> list[int]:
    """Return those of the given batches that are no longer queued."""
    return list(connection.execute(_FINAL_AMONG, {"batch_ids": list(batch_ids)}).scalars())


_FINAL_AMONG = text("SELECT id FROM batches WHERE id = ANY(:batch_ids) AND status <> 'queued'")


def has_due(connection: Connection, organization_id: int) -> bool:
    """Tell whether an organization has a queued batch that a drain would take now."""
    return bool(connection.execute(_HAS_DUE, {"organization_id": organization_id}).scalar_one())


_HAS_DUE = text("""
    SELECT EXISTS (SELECT FROM batches WHERE organization_id = :organization_id AND status = 'queued'
                   AND (retry_at IS NULL OR retry_at <= clock_timestamp()))
""")


def due(connection: Connection, organization_id: int, *, at_most: int) -> list[int]:
    """Return the ids of an organization's batches that a drain would take now, oldest first."""
    parameters = {"organization_id": organization_id, "at_most": at_most}
    return list(connection.execute(_DUE, parameters).scalars())


_DUE = text("""
    SELECT id FROM batches WHERE organization_id = :organization_id AND status = 'queued'
        AND (retry_at IS NULL OR retry_at <= clock_timestamp())
    ORDER BY id LIMIT :at_most
""")


@dataclass(frozen=True, kw_only=True, slots=True)
class Queued:
    """How many batches are queued, and for how many seconds the oldest of them has been."""

    batches: int
    oldest_s: float | None


def queued(connection: Connection) -> Queued:
    """Count what is queued, for the people who watch."""
    return Queued(**connection.execute(_QUEUED).one()._mapping)  # noqa: SLF001


_QUEUED = text("""
    SELECT count(*) AS batches,
           CAST(extract(epoch FROM clock_timestamp() - min(created_at)) AS float) AS oldest_s
    FROM batches WHERE status = 'queued'
""")


def organizations_waiting(connection: Connection, *, longer_than_s: float) -> list[int]:
    """Return the organizations with a batch that is due and has been queued for longer than it should."""
    return list(connection.execute(_ORGANIZATIONS_WAITING, {"longer_than_s": longer_than_s}).scalars())


_ORGANIZATIONS_WAITING = text("""
    SELECT DISTINCT organization_id FROM batches
    WHERE status = 'queued' AND created_at < clock_timestamp() - make_interval(secs => :longer_than_s)
      AND (retry_at IS NULL OR retry_at <= clock_timestamp())
    ORDER BY organization_id
""")


def forget_idempotency_keys(connection: Connection, *, older_than_days: int, at_most: int) -> int:
    """Take the idempotency keys from some of the oldest batches that are past their time; return from how many."""
    parameters = {"older_than_days": older_than_days, "at_most": at_most}
    return connection.execute(_FORGET_IDEMPOTENCY_KEYS, parameters).rowcount


_FORGET_IDEMPOTENCY_KEYS = text("""
    UPDATE batches SET idempotency_key = NULL, idempotency_hash = NULL
    WHERE id IN (SELECT id FROM batches
                 WHERE idempotency_key IS NOT NULL AND status <> 'queued'
                   AND created_at < clock_timestamp() - make_interval(days => :older_than_days)
                 ORDER BY created_at LIMIT :at_most)
""")


def postpone(connection: Connection, batch_id: int) -> None:
    """Put a batch that failed on its own aside for a while: 1 s, 2 s, 4 s … up to 10 s."""
    connection.execute(_POSTPONE, {"id": batch_id})


_POSTPONE = text("""
    UPDATE batches SET failures = failures + 1,
        retry_at = clock_timestamp() + make_interval(secs => least(2 ^ least(failures, 10), 10))
    WHERE id = :id AND status = 'queued'
""")
