"""Issuing: debit an organization for its queued batches and write one transaction per recipient."""

from collections.abc import Sequence
from dataclasses import dataclass

from sqlalchemy import Connection, Row, text

from app.ledger.verify import affordable, may_not_issue

# One drain is one transaction. More batches in it cost less each (1,032 µs alone, 47 µs among 200),
# but hold the organization row for longer.
BATCHES_MAX = 200
RECIPIENTS_MAX = 20_000

# The advisory lock of a drain: this number in the upper 16 bits, the organization's id in the lower 48.
_DRAIN_LOCK = 0x5054 << 48


@dataclass(frozen=True, kw_only=True, slots=True)
class Queued:
    """A batch taken from the queue; `amount` is points for each of its `recipients`."""

    id: int
    sandbox: bool
    amount: int
    atomic: bool
    recipients: int


@dataclass(frozen=True, kw_only=True, slots=True)
class Decided:
    """A queued batch and what the balance pays of it: the first `debited_count` recipients."""

    batch: Queued
    opening_balance: int
    debited_count: int

    @property
    def current_balance(self) -> int:
        return self.opening_balance - self.batch.amount * self.debited_count


def own_drain(connection: Connection, organization_id: int) -> bool:
    """Try to become, until this transaction ends, the only worker that drains an organization.

    It does not wait: whoever finds the drain owned leaves, and the owner looks at the queue again
    after it has released. SKIP LOCKED on the organization row would not do, because a refill that
    holds the row for a moment would then turn a worker away and never look at the queue.
    """
    return bool(connection.execute(_OWN_DRAIN, {"lock": _DRAIN_LOCK | organization_id}).scalar_one())


_OWN_DRAIN = text("SELECT pg_try_advisory_xact_lock(:lock)")


def take(connection: Connection, organization_id: int) -> list[Queued]:
    """Return the due batches of an organization, oldest first, as many as one drain may hold (at least one)."""
    taken: list[Queued] = []
    recipients = 0
    rows = connection.execute(_TAKE, {"organization_id": organization_id, "batches_max": BATCHES_MAX})
    for row in rows:
        recipients += row.recipients
        if taken and recipients > RECIPIENTS_MAX:
            break
        taken.append(Queued(**row._mapping))  # noqa: SLF001
    return taken


_TAKE = text("""
    SELECT id, sandbox, amount, atomic, recipient_count AS recipients
    FROM batches
    WHERE organization_id = :organization_id AND status = 'queued'
      AND (retry_at IS NULL OR retry_at <= clock_timestamp())
    ORDER BY id
    LIMIT :batches_max
""")


def issue(connection: Connection, organization_id: int, batch_ids: Sequence[int] | None = None) -> list[int]:
    """Issue (or refuse) the queued batches of an organization in this transaction; return their ids.

    The caller owns the drain. With `batch_ids`, only those of them that are still queued are taken: a
    batch that is delivered twice is found issued here, under the lock, and is left alone.
    """
    # The row lock. From here to the commit no other worker debits this organization, and a refill or
    # a suspension waits for us or we for it. NO KEY, because a plain FOR UPDATE would hold up the
    # front end: each INSERT of a batch takes a share of this row's key for its foreign key.
    organization = connection.execute(_LOCK_ORGANIZATION, {"id": organization_id}).one()
    # Look only now: what was queued before the lock may have been issued by the one we waited for.
    queued = [batch for batch in take(connection, organization_id) if batch_ids is None or batch.id in batch_ids]
    if not queued:
        return []
    refusal = may_not_issue(is_disabled=organization.is_disabled, is_suspended=organization.is_suspended)
    if refusal is not None:
        connection.execute(_REFUSE, {"ids": [batch.id for batch in queued], "refusal": refusal.code})
    else:
        _issue(connection, organization, _decide(organization, queued))
    return [batch.id for batch in queued]


_LOCK_ORGANIZATION = text("""
    SELECT id, name, is_disabled, is_suspended, balance, last_refill, sandbox_balance, sandbox_last_refill
    FROM organizations WHERE id = :id FOR NO KEY UPDATE
""")

# A refused batch gives its idempotency key back: a refused request does not use one up.
_REFUSE = text("""
    UPDATE batches SET status = 'refused', refusal = :refusal, idempotency_key = NULL, idempotency_hash = NULL
    WHERE id = ANY(:ids)
""")


def _decide(organization: Row[tuple[int, ...]], queued: Sequence[Queued]) -> list[Decided]:
    """Go through the batches in order, each from the balance that the one before it in its mode left."""
    balances = {False: organization.balance, True: organization.sandbox_balance}
    decisions = []
    for batch in queued:
        opening = balances[batch.sandbox]
        count = affordable(balance=opening, amount=batch.amount, recipients=batch.recipients, atomic=batch.atomic)
        decided = Decided(batch=batch, opening_balance=opening, debited_count=count)
        assert 0 <= decided.current_balance <= opening, "a debit takes from a balance and never overdraws it"
        balances[batch.sandbox] = decided.current_balance
        decisions.append(decided)
    return decisions


def _issue(connection: Connection, organization: Row[tuple[int, ...]], decisions: Sequence[Decided]) -> None:
    ids = [decided.batch.id for decided in decisions]
    live_ids = [decided.batch.id for decided in decisions if not decided.batch.sandbox]
    parameters = {
        "ids": ids,
        "openings": [decided.opening_balance for decided in decisions],
        "debited_counts": [decided.debited_count for decided in decisions],
        "current_balances": [decided.current_balance for decided in decisions],
    }
    # Every user of the drain is locked first, in one pass and in one order, so that two organizations
    # that pay the same users in opposite orders wait for each other and never deadlock. The rows are
    # then written for these users only: one registered since has no lock, and counts as not there yet.
    users = connection.execute(_LOCK_USERS, {"ids": ids}).scalar_one()
    written = connection.execute(_WRITE_TRANSACTIONS, {**parameters, "user_ids": users}).rowcount
    expected = sum(decided.batch.recipients for decided in decisions)
    assert written == expected, f"{written} transactions were written for {expected} recipients"
    if users and live_ids:
        connection.execute(_CREDIT_USERS, {"ids": live_ids})
    connection.execute(
        _COMPLETE_BATCHES,
        {
            **parameters,
            "name": organization.name,
            "last_refill": organization.last_refill,
            "sandbox_last_refill": organization.sandbox_last_refill,
        },
    )
    connection.execute(
        _DEBIT_ORGANIZATION,
        {
            "id": organization.id,
            "live": _debited(decisions, sandbox=False),
            "sandbox": _debited(decisions, sandbox=True),
        },
    )


def _debited(decisions: Sequence[Decided], *, sandbox: bool) -> int:
    """Return the points that the batches of one mode take together."""
    return sum(
        decided.opening_balance - decided.current_balance for decided in decisions if decided.batch.sandbox is sandbox
    )


_LOCK_USERS = text("""
    WITH locked AS (
        SELECT u.id FROM users u
        WHERE u.email_key IN (SELECT unnest(b.email_keys) FROM batches b WHERE b.id = ANY(:ids))
        ORDER BY u.id
        FOR NO KEY UPDATE OF u
    )
    SELECT coalesce(array_agg(id), '{}') FROM locked
""")

_WRITE_TRANSACTIONS = text("""
    INSERT INTO transactions (batch_id, position, sandbox, user_id, debited, credited, balance, email, email_key)
    SELECT b.id, r.ordinality - 1, b.sandbox, u.id,
           r.ordinality <= d.debited_count,
           r.ordinality <= d.debited_count AND u.id IS NOT NULL,
           d.opening - b.amount * least(r.ordinality, d.debited_count),
           r.email, r.email_key
    FROM unnest(CAST(:ids AS bigint[]), CAST(:openings AS bigint[]), CAST(:debited_counts AS int[]))
             AS d (batch_id, opening, debited_count)
    JOIN batches b ON b.id = d.batch_id
    CROSS JOIN LATERAL unnest(b.emails, b.email_keys) WITH ORDINALITY AS r (email, email_key, ordinality)
    LEFT JOIN (SELECT id, email_key FROM users WHERE id = ANY(:user_ids)) AS u ON u.email_key = r.email_key
    ORDER BY b.id, r.ordinality
""")

_CREDIT_USERS = text("""
    UPDATE users SET balance = users.balance + credits.points
    FROM (SELECT t.user_id, sum(b.amount) AS points
          FROM transactions t JOIN batches b ON b.id = t.batch_id
          WHERE t.batch_id = ANY(:ids) AND t.credited
          GROUP BY t.user_id) AS credits
    WHERE users.id = credits.user_id
""")

_COMPLETE_BATCHES = text("""
    UPDATE batches SET status = 'issued', issued_at = (SELECT clock_timestamp()), retry_at = NULL,
        debited_count = d.debited_count, current_balance = d.current_balance, organization_name = :name,
        last_refill = CASE WHEN batches.sandbox THEN CAST(:sandbox_last_refill AS bigint)
                           ELSE CAST(:last_refill AS bigint) END
    FROM unnest(CAST(:ids AS bigint[]), CAST(:debited_counts AS int[]), CAST(:current_balances AS bigint[]))
             AS d (batch_id, debited_count, current_balance)
    WHERE batches.id = d.batch_id
""")

_DEBIT_ORGANIZATION = text("""
    UPDATE organizations SET balance = balance - :live, sandbox_balance = sandbox_balance - :sandbox WHERE id = :id
""")
