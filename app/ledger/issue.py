"""Issuing: debit an organization for its queued batches and write one transaction per recipient."""

from collections.abc import Iterable, Iterator, Sequence
from typing import Any, NamedTuple

from psycopg.rows import namedtuple_row
from sqlalchemy import Connection

from app.batches import IS_DUE
from app.database import driver
from app.ledger.verify import affordable
from app.organizations import may_not_issue

# One drain is one transaction. More batches in it cost less each (1,032 µs alone, 47 µs among 200),
# but hold the organization row for longer.
BATCHES_MAX = 200
RECIPIENTS_MAX = 20_000


class Queued(NamedTuple):
    """A batch taken from the queue; `amount` is points for each of its `recipients`."""

    id: int
    sandbox: bool
    amount: int
    atomic: bool
    recipients: int


class Decided(NamedTuple):
    """A queued batch and what the balance pays of it: the first `debited_count` recipients."""

    batch: Queued
    opening_balance: int
    debited_count: int

    @property
    def current_balance(self) -> int:
        return self.opening_balance - self.batch.amount * self.debited_count


class Outcome(NamedTuple):
    """What became of a batch: how many recipients were debited, or None when it was refused."""

    batch: Queued
    debited_count: int | None


def drain_lock(organization_id: int) -> int:
    """Return the number of a drain's advisory lock: ours in the upper 16 bits, the organization in the lower 48."""
    return 0x5054 << 48 | organization_id


def issue(
    connection: Connection,
    organization_id: int,
    batch_ids: Sequence[int] | None = None,
    *,
    outcomes: list[Outcome] | None = None,
) -> list[int] | None:
    """Issue (or refuse) the due batches of an organization in this transaction, oldest first; return their ids.

    With `batch_ids`, only those of them that are still queued are taken. Returns None when another
    worker owns the organization's drain; a batch that is delivered twice is found issued here, under the
    lock, and is left alone. `outcomes`, if given, is filled; they hold once the transaction has committed.
    """
    organization, due = _lock_and_take(connection, organization_id)
    if organization is None:
        return None
    queued = [batch for batch in _within_cap(due) if batch_ids is None or batch.id in batch_ids]
    if not queued:
        return []
    refusal = may_not_issue(is_disabled=organization.is_disabled, is_suspended=organization.is_suspended)
    if refusal is not None:
        with driver(connection) as postgresql:
            postgresql.execute(_REFUSE, {"ids": [batch.id for batch in queued], "refusal": refusal.code})
        found = [Outcome(batch, None) for batch in queued]
    else:
        decisions = _decide(organization, queued)
        _write(connection, organization, decisions)
        found = [Outcome(decided.batch, decided.debited_count) for decided in decisions]
    if outcomes is not None:
        outcomes += found
    return [batch.id for batch in queued]


def _lock_and_take(connection: Connection, organization_id: int) -> tuple[Any, list[Any]]:
    """Return the organization, locked, and its due batches; or None in its place when its drain is owned."""
    with driver(connection) as postgresql:
        locking = postgresql.cursor(row_factory=namedtuple_row)
        taking = postgresql.cursor(row_factory=namedtuple_row)
        with postgresql.pipeline():  # One round trip for both, in this order.
            locking.execute(_OWN_AND_LOCK, {"id": organization_id, "drain": drain_lock(organization_id)})
            # A statement of its own, so that it looks after the lock: what was queued before may have been
            # issued by whoever we waited for.
            taking.execute(_TAKE, {"organization_id": organization_id, "batches_max": BATCHES_MAX})
        return locking.fetchone(), taking.fetchall()


# Two locks in one statement. First the drain's: until this transaction ends, this is the only worker that
# drains the organization. It is tried and not waited for: whoever finds the drain owned leaves, and the
# owner looks at the queue again after it has released. (SKIP LOCKED on the row would not do: a refill that
# holds the row for a moment would turn a worker away and never look at the queue.) Only its owner goes on
# to the row lock: from here to the commit nobody else debits this organization, and a refill or a
# suspension waits for us or we for it. NO KEY, because a plain FOR UPDATE would also hold up every INSERT
# whose foreign key points at this row: a new key's, a refill's.
_OWN_AND_LOCK = b"""
    SELECT id, name, is_disabled, is_suspended, balance, last_refill, sandbox_balance, sandbox_last_refill
    FROM organizations WHERE id = %(id)s AND pg_try_advisory_xact_lock(%(drain)s) FOR NO KEY UPDATE
"""

_TAKE = f"""
    SELECT id, sandbox, amount, atomic, recipient_count
    FROM batches
    WHERE organization_id = %(organization_id)s AND {IS_DUE}
    ORDER BY id
    LIMIT %(batches_max)s
""".encode()


def _within_cap(due: Iterable[Any]) -> Iterator[Queued]:
    """Return as many of the due batches as one drain may hold, at least one."""
    recipients = 0
    for row in due:
        recipients += row.recipient_count
        if RECIPIENTS_MAX < recipients != row.recipient_count:
            return
        yield Queued(*row)


# A refused batch gives its idempotency key back: a refused request does not use one up.
_REFUSE = b"""
    UPDATE batches SET status = 'refused', refusal = %(refusal)s, idempotency_key = NULL, idempotency_hash = NULL
    WHERE id = ANY(%(ids)s)
"""


def _decide(organization: Any, queued: Sequence[Queued]) -> list[Decided]:
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


def _write(connection: Connection, organization: Any, decisions: Sequence[Decided]) -> None:
    """Write all that an issue changes in one statement, which is not asked what it wrote: the commit follows at once.

    It debits for what it writes and nothing else. That a batch has as many addresses as recipients, a
    constraint of its row says.
    """
    with driver(connection) as postgresql:
        postgresql.execute(
            _WRITE,
            {
                "ids": [decided.batch.id for decided in decisions],
                "openings": [decided.opening_balance for decided in decisions],
                "debited_counts": [decided.debited_count for decided in decisions],
                "organization_id": organization.id,
                "name": organization.name,
                "last_refill": organization.last_refill,
                "sandbox_last_refill": organization.sandbox_last_refill,
            },
        )


# No user's row is locked or written: `unfolded` says that these credits are still to be added, and until
# then they are counted from the transactions (`app.users.find`). So two organizations that pay the same
# users never wait for each other. A user registered while this runs is not seen, and the points are held
# until the registration's own claim, or the sweep of crossed registrations, finds them.
#
# Its plan is kept, and made when the tables may still be small, so it is put in a way that no plan reads a table
# whole: the batches are found in the index of what is queued, each user in that of the addresses.
_WRITE = b"""
    WITH decided AS MATERIALIZED (
        SELECT * FROM unnest(%(ids)s::bigint[], %(openings)s::bigint[], %(debited_counts)s::int[])
                          AS d (batch_id, opening, debited_count)
    ), completed AS (
        UPDATE batches b
        SET status = 'issued', issued_at = (SELECT clock_timestamp()), retry_at = NULL,
            debited_count = d.debited_count, current_balance = d.opening - b.amount * d.debited_count,
            organization_name = %(name)s,
            last_refill = CASE WHEN b.sandbox THEN %(sandbox_last_refill)s::bigint ELSE %(last_refill)s::bigint END
        FROM decided d
        WHERE b.id = d.batch_id AND b.organization_id = %(organization_id)s AND b.status = 'queued'
        RETURNING b.id, b.organization_id, b.sandbox, b.amount, b.emails, b.email_keys, d.opening, d.debited_count
    ), debited AS (
        UPDATE organizations
        SET balance = balance - (SELECT coalesce(sum(amount * debited_count), 0)::bigint
                                 FROM completed WHERE NOT sandbox),
            sandbox_balance = sandbox_balance - (SELECT coalesce(sum(amount * debited_count), 0)::bigint
                                                 FROM completed WHERE sandbox)
        WHERE id = %(organization_id)s
    ), unfolded AS (
        INSERT INTO unfolded_batches (batch_id) SELECT id FROM completed WHERE debited_count > 0 AND NOT sandbox
    )
    INSERT INTO transactions (organization_id, batch_id, position, sandbox, user_id, debited, credited, balance,
                              email, email_key)
    SELECT b.organization_id, b.id, r.ordinality - 1, b.sandbox, u.id,
           r.ordinality <= b.debited_count,
           r.ordinality <= b.debited_count AND u.id IS NOT NULL,
           b.opening - b.amount * least(r.ordinality, b.debited_count),
           r.email, nullif(r.email_key, r.email)
    FROM completed b
    CROSS JOIN LATERAL unnest(b.emails, coalesce(b.email_keys, b.emails)) WITH ORDINALITY
                           AS r (email, email_key, ordinality)
    LEFT JOIN LATERAL (SELECT id FROM users WHERE users.email_key = r.email_key LIMIT 1) u ON true
    ORDER BY b.id, r.ordinality
"""
