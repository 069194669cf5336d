"""Acceptance: the one statement that knows who calls and writes their batches, for one send or for many at once."""

import hashlib
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import NamedTuple

from app.arrays import array, text_array
from app.batches import QUEUED, BatchRow
from app.database import AnyConnection, together
from app.errors import IdempotencyKeyReused, InvalidKey, PointsError
from app.exchange import Answer, Statement
from app.organizations import may_not_issue


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


class Send(NamedTuple):
    """One send as the front has read it: the hash of its API key, what it asks for, how it may be repeated."""

    key_hash: bytes
    request: IssueRequest
    idempotency_key: str | None


class Acceptance(NamedTuple):
    """What became of a send at the front: a batch of its own, or (`existed`) the one its key already names.

    `created_at` is the batch's. A PostgreSQL that has lost commits gives their ids away again, but not at that moment.
    """

    api_key_id: int
    key_use_is_old: bool
    organization_id: int
    batch_id: int
    status: str
    existed: bool
    created_at: datetime

    def is_of(self, batch: BatchRow) -> bool:
        """Tell whether this is the batch that was accepted, and not another one that has its id by now."""
        accepted = (self.batch_id, self.organization_id, self.created_at)
        return accepted == (batch.id, batch.organization_id, batch.created_at)


def accept(
    connection: AnyConnection, sends: Sequence[Send], *, meanwhile: Callable[[], None] | None = None
) -> list[Acceptance | PointsError | None]:
    """Write a queued batch for each send that may have one; return what became of each, at its place.

    One statement does it all: once it is committed, what it accepted cannot be lost. The errors are
    returned, because one caller's are no other's: `InvalidKey`, `IdempotencyKeyReused`, `MayNotIssue`
    (a batch that the idempotency key names is found before that is asked). None stands for a send whose
    idempotency key another took in the same moment: the batch that holds it is there now, so ask again.

    `meanwhile` is done while PostgreSQL is at it.
    """
    with together(connection) as exchange:
        answer = exchange.ask(_ACCEPT, **_columns(sends))
        if meanwhile is not None:
            exchange.meanwhile(meanwhile)
    return _outcomes(len(sends), answer)


def _outcomes(count: int, answer: Answer) -> list[Acceptance | PointsError | None]:
    outcomes: list[Acceptance | PointsError | None] = [InvalidKey()] * count
    for row in map(_Row._make, answer.rows):
        outcomes[row.place] = _outcome(row)
    return outcomes


class _Row(NamedTuple):
    """What `_ACCEPT` returns of a send whose key is good: what its idempotency key names, or what was written."""

    place: int
    api_key_id: int
    key_use_is_old: bool
    organization_id: int
    is_disabled: bool
    is_suspended: bool
    known_id: int | None
    known_status: str | None
    is_same: bool | None
    written_id: int | None
    created_at: datetime | None


def _outcome(row: _Row) -> Acceptance | PointsError | None:
    batch_id = row.written_id
    if row.known_id is not None:
        if not row.is_same:
            return IdempotencyKeyReused()
        batch_id = row.known_id
    elif (refusal := may_not_issue(is_disabled=row.is_disabled, is_suspended=row.is_suspended)) is not None:
        return refusal
    if batch_id is None:
        return None
    assert row.created_at is not None, "every batch has one, known or written"
    return Acceptance(
        api_key_id=row.api_key_id,
        key_use_is_old=row.key_use_is_old,
        organization_id=row.organization_id,
        batch_id=batch_id,
        status=row.known_status or QUEUED,
        existed=row.known_id is not None,
        created_at=row.created_at,
    )


def _columns(sends: Sequence[Send]) -> dict[str, str]:
    requests = [send.request for send in sends]
    return {
        "hashes": array(send.key_hash for send in sends),
        "amounts": array(request.amount for request in requests),
        "atomics": array(request.atomic for request in requests),
        "labels": array(request.label for request in requests),
        "counts": array(len(request.emails) for request in requests),
        # Each of them an array within a text: an array of arrays could not hold sends of different lengths.
        "emails": array(text_array(request.emails) for request in requests),
        "email_keys": array(
            None if request.email_keys == request.emails else text_array(request.email_keys) for request in requests
        ),
        "idempotency_keys": array(send.idempotency_key for send in sends),
        "idempotency_hashes": array(None if send.idempotency_key is None else send.request.meaning() for send in sends),
    }


# The rows go in in the order of their idempotency keys: two groups that meet on the same keys wait for each other one
# way round only. Ids and moments are drawn before, in the order in which the sends came, so that they rise together
# and the lists are newest first whatever they go by; and because what an INSERT returns does not say which source row
# it came from. Only for what is to be written, and one more id for each 16 recipients, so that a run of ids stands for
# a bounded number of transactions as well (`app.models.ERA`). The key's last use is noted apart, once a minute
# (`app.api_keys`).
_ACCEPT = Statement("""
    WITH asked AS MATERIALIZED (
        SELECT a.*, k.id AS api_key_id, k.sandbox, o.id AS organization_id, o.is_disabled, o.is_suspended,
               k.last_used_at IS NULL OR k.last_used_at < clock_timestamp() - interval '1 minute' AS key_use_is_old
        FROM unnest(%(hashes)s::bytea[], %(amounts)s::bigint[], %(atomics)s::boolean[], %(labels)s::text[],
                    %(counts)s::int[], %(emails)s::text[], %(email_keys)s::text[], %(idempotency_keys)s::text[],
                    %(idempotency_hashes)s::bytea[])
             WITH ORDINALITY AS a (hash, amount, atomic, label, recipient_count, emails, email_keys, idempotency_key,
                                   idempotency_hash, ordinality)
        JOIN api_keys k ON k.hash = a.hash AND k.revoked_at IS NULL
        JOIN organizations o ON o.id = k.organization_id
    ), known AS MATERIALIZED (
        SELECT a.ordinality, b.id, b.status, b.idempotency_hash = a.idempotency_hash AS is_same, b.created_at
        FROM asked a
        JOIN batches b ON b.organization_id = a.organization_id AND b.sandbox = a.sandbox
                      AND b.idempotency_key = a.idempotency_key
        WHERE a.idempotency_key IS NOT NULL
    ), fresh AS MATERIALIZED (
        SELECT a.*, (SELECT max(nextval('batches_id_seq')) FROM generate_series(0, a.recipient_count / 16)) AS id,
               clock_timestamp() AS created_at
        FROM asked a
        WHERE NOT a.is_disabled AND NOT a.is_suspended
          AND NOT EXISTS (SELECT FROM known k WHERE k.ordinality = a.ordinality)
    ), written AS (
        INSERT INTO batches (id, organization_id, sandbox, amount, atomic, label, recipient_count, emails, email_keys,
                             idempotency_key, idempotency_hash, created_at)
        OVERRIDING SYSTEM VALUE
        SELECT id, organization_id, sandbox, amount, atomic, label, recipient_count,
               emails::text[], email_keys::text[], idempotency_key, idempotency_hash, created_at
        FROM fresh
        ORDER BY organization_id, sandbox, idempotency_key, ordinality
        ON CONFLICT (organization_id, sandbox, idempotency_key) WHERE idempotency_key IS NOT NULL DO NOTHING
        RETURNING id
    )
    SELECT (a.ordinality - 1)::int AS place, a.api_key_id, a.key_use_is_old, a.organization_id, a.is_disabled,
           a.is_suspended, k.id AS known_id, k.status AS known_status, k.is_same, w.id AS written_id,
           coalesce(k.created_at, f.created_at) AS created_at
    FROM asked a
    LEFT JOIN known k ON k.ordinality = a.ordinality
    LEFT JOIN fresh f ON f.ordinality = a.ordinality
    LEFT JOIN written w ON w.id = f.id
""")
