"""Issuing: debit an organization for its queued batches and write one transaction per recipient."""

from typing import NamedTuple

from app.errors import OrganizationDisabled, OrganizationSuspended
from app.exchange import Answer, Exchange, Statement
from app.ledger.queued import IS_DUE
from app.settings import INT64_MAX

# One drain is one transaction. More batches in it cost less each (1,032 µs alone, 47 µs among 200),
# but hold the organization row for longer.
BATCHES_MAX = 200
RECIPIENTS_MAX = 20_000


class Outcome(NamedTuple):
    """What became of a batch: of its `recipients`, so many were debited `amount` points; None when it was refused."""

    batch_id: int
    sandbox: bool
    amount: int
    recipients: int
    debited_count: int | None


class Issue:
    """An issue that PostgreSQL was asked for. What came of it holds once its transaction has committed."""

    def __init__(self, owning: Answer, issuing: Answer) -> None:
        self._owning = owning
        self._issuing = issuing

    def outcomes(self) -> list[Outcome] | None:
        """Return what became of each batch, oldest first; None when another worker owns the organization's drain."""
        return [Outcome._make(row) for row in self._issuing.rows] if self._owning.rows else None


def drain_lock(organization_id: int) -> int:
    """Return the number of a drain's advisory lock: ours in the upper 16 bits, the organization in the lower 48."""
    return 0x5054 << 48 | organization_id


def issue(exchange: Exchange, organization_id: int, *, only: int | None = None) -> Issue:
    """Ask to issue (or refuse) the due batches of an organization, oldest first, or `only` one of them.

    A batch that is delivered twice is found issued here, under the lock, and is left alone. Nothing is read
    here, so that a whole drain is one way to PostgreSQL and back.
    """
    owning = _own_and_lock(exchange, organization_id)
    # A statement of its own, so that it looks after the lock: what was queued before may have been
    # issued by whoever we waited for.
    return Issue(owning, _decide_and_write(exchange, organization_id, only))


def _own_and_lock(exchange: Exchange, organization_id: int) -> Answer:
    drain = drain_lock(organization_id)
    return exchange.ask(_OWN_AND_LOCK, organization_id=organization_id, drain=drain, lock_timeout_ms=_LOCK_TIMEOUT_MS)


def _decide_and_write(exchange: Exchange, organization_id: int, only: int | None) -> Answer:
    return exchange.ask(
        _DECIDE_AND_WRITE,
        organization_id=organization_id,
        first=only or 1,
        last=only or INT64_MAX,
        batches_max=BATCHES_MAX,
        recipients_max=RECIPIENTS_MAX,
        disabled=OrganizationDisabled.code,
        suspended=OrganizationSuspended.code,
    )


# Who holds the organization row for longer than this is no drain, refill or suspension of ours.
_LOCK_TIMEOUT_MS = 1_000

# Two locks in one statement. First the drain's: until this transaction ends, this is the only worker that
# drains the organization. It is tried and not waited for: whoever finds the drain owned leaves, and the
# owner looks at the queue again after it has released. (SKIP LOCKED on the row would not do: a refill that
# holds the row for a moment would turn a worker away and never look at the queue.) Only its owner goes on
# to the row lock: from here to the commit nobody else debits this organization, and a refill or a
# suspension waits for us or we for it. NO KEY, because a plain FOR UPDATE would also hold up every INSERT
# whose foreign key points at this row: a new key's, a refill's.
#
# The row is not waited for as long as a connection of ours waits for a lock, because a worker's process has other
# organizations to serve. The limit is set before the row is locked: rows are locked once they are found.
#
# `points.drain` is a note for the next statement, which is sent before this one is answered: it names the
# organization that this transaction owns, and is gone when the transaction ends.
_OWN_AND_LOCK = Statement("""
    SELECT set_config('points.drain', id::text, true) FROM organizations
    WHERE id = %(organization_id)s::bigint AND pg_try_advisory_xact_lock(%(drain)s)
      AND set_config('lock_timeout', %(lock_timeout_ms)s::text, true) <> ''
    FOR NO KEY UPDATE
""")

# What was decided for a batch `b`, which is still queued. The upper bound keeps whoever looks for these few
# batches from reading the whole queue.
_IS_DECIDED = """d.batches > 0 AND b.id = d.batch_id AND b.id <= (SELECT max(batch_id) FROM decided)
          AND b.organization_id = %(organization_id)s::bigint AND b.status = 'queued'"""

# One statement decides and writes all that an issue changes: where it took two, the organization was locked for a
# way to the worker and back, and its callers waited for it. It goes from batch to batch through the queue, each
# from the balance that the one before it in its mode left, and debits for what it writes and nothing else. That a
# batch has as many addresses as recipients, a constraint of its row says; that no balance is overdrawn, those of
# both rows. What a balance pays is decided here for a send, and for verify in `app.ledger.verify`; a test holds
# the two against each other.
#
# No user's row is locked or written: `unfolded` says that these credits are still to be added, and until
# then they are counted from the transactions (`app.users.find`). So two organizations that pay the same
# users never wait for each other. A user registered while this runs is not seen, and the points are held
# until the registration's own claim, or the look for crossed ones, finds them.
#
# A refused batch gives its idempotency key back: a refused request does not use one up.
#
# Its plan is kept, and made when the tables may still be small, so it is put in a way that no plan reads a table
# whole: the batches are found in the index of what is queued, each user in that of the addresses. Only that index of
# batches has the order that is asked for: by their ids alone, a plan went through all that were ever issued.
_DECIDE_AND_WRITE = Statement(f"""
    WITH RECURSIVE organization AS MATERIALIZED (
        SELECT id, name, balance, last_refill, sandbox_balance, sandbox_last_refill,
               CASE WHEN is_disabled THEN %(disabled)s::text WHEN is_suspended THEN %(suspended)s END AS refusal
        FROM organizations
        WHERE id = %(organization_id)s::bigint
          AND current_setting('points.drain', true) = %(organization_id)s::bigint::text
    ), decided AS (
        SELECT 0 AS batches, %(first)s::bigint - 1 AS batch_id, 0::bigint AS recipients, balance, sandbox_balance,
               0::bigint AS opening, 0 AS debited_count
        FROM organization
        UNION ALL
        SELECT d.batches + 1, b.id, d.recipients + b.recipient_count,
               d.balance - CASE WHEN b.sandbox THEN 0 ELSE b.amount * c.debited_count END,
               d.sandbox_balance - CASE WHEN b.sandbox THEN b.amount * c.debited_count ELSE 0 END,
               o.opening, c.debited_count
        FROM decided d
        CROSS JOIN LATERAL (
            SELECT id, sandbox, amount, atomic, recipient_count FROM batches
            WHERE (organization_id, id) > (%(organization_id)s::bigint, d.batch_id)
              AND (organization_id, id) <= (%(organization_id)s::bigint, %(last)s::bigint) AND {IS_DUE}
            ORDER BY organization_id, id LIMIT 1
        ) b
        CROSS JOIN LATERAL (SELECT CASE WHEN b.sandbox THEN d.sandbox_balance ELSE d.balance END AS opening) o
        CROSS JOIN LATERAL (SELECT least(b.recipient_count, o.opening / b.amount)::int AS paid) p
        CROSS JOIN LATERAL (
            SELECT CASE WHEN b.atomic AND p.paid < b.recipient_count THEN 0 ELSE p.paid END AS debited_count
        ) c
        WHERE d.batches < %(batches_max)s::int
          AND (d.batches = 0 OR d.recipients + b.recipient_count <= %(recipients_max)s::bigint)
    ), refused AS (
        UPDATE batches b
        SET status = 'refused', refusal = o.refusal, idempotency_key = NULL, idempotency_hash = NULL
        FROM decided d, organization o
        WHERE (SELECT refusal IS NOT NULL FROM organization) AND {_IS_DECIDED}
        RETURNING b.id, b.sandbox, b.amount, b.recipient_count, NULL::int AS debited_count
    ), issued AS (
        UPDATE batches b
        SET status = 'issued', issued_at = (SELECT clock_timestamp()), retry_at = NULL,
            debited_count = d.debited_count, current_balance = d.opening - b.amount * d.debited_count,
            organization_name = o.name,
            last_refill = CASE WHEN b.sandbox THEN o.sandbox_last_refill ELSE o.last_refill END
        FROM decided d, organization o
        WHERE (SELECT refusal IS NULL FROM organization) AND {_IS_DECIDED}
        RETURNING b.id, b.organization_id, b.sandbox, b.amount, b.recipient_count, b.emails, b.email_keys,
                  d.opening, d.debited_count
    ), debited AS (
        UPDATE organizations
        SET balance = balance - (SELECT coalesce(sum(amount * debited_count), 0)::bigint
                                 FROM issued WHERE NOT sandbox),
            sandbox_balance = sandbox_balance - (SELECT coalesce(sum(amount * debited_count), 0)::bigint
                                                 FROM issued WHERE sandbox)
        WHERE id = %(organization_id)s::bigint AND EXISTS (SELECT FROM issued WHERE debited_count > 0)
    ), unfolded AS (
        INSERT INTO unfolded_batches (batch_id) SELECT id FROM issued WHERE debited_count > 0 AND NOT sandbox
    ), written AS (
        INSERT INTO transactions (organization_id, batch_id, position, sandbox, user_id, debited, credited, balance,
                                  email, email_key)
        SELECT b.organization_id, b.id, r.ordinality - 1, b.sandbox, u.id,
               r.ordinality <= b.debited_count,
               r.ordinality <= b.debited_count AND u.id IS NOT NULL,
               b.opening - b.amount * least(r.ordinality, b.debited_count),
               r.email, nullif(r.email_key, r.email)
        FROM issued b
        CROSS JOIN LATERAL unnest(b.emails, coalesce(b.email_keys, b.emails)) WITH ORDINALITY
                               AS r (email, email_key, ordinality)
        LEFT JOIN LATERAL (SELECT id FROM users WHERE users.email_key = r.email_key LIMIT 1) u ON true
        ORDER BY b.id, r.ordinality
    )
    SELECT id, sandbox, amount, recipient_count, debited_count FROM issued
    UNION ALL
    SELECT id, sandbox, amount, recipient_count, debited_count FROM refused
    ORDER BY id
""")
