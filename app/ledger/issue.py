"""Issuing: debit an organization for its queued batches, a transaction per recipient; and reversing: take them back."""

from importlib.resources import files
from typing import NamedTuple

from sqlalchemy import Connection, text

from app.batches import key_limits
from app.batches.batch import DIGESTED
from app.batches.queue import IS_DUE, PLACE, oldest_due_reversal, postpone
from app.batches.verify import INSUFFICIENT_RECIPIENT
from app.errors import BalanceTooLarge, BatchNotIssued, OrganizationDisabled, OrganizationSuspended
from app.ledger.held_list import LISTED_BY_ISSUE_TO, exclude_claims, list_issued, take_off_list
from app.ledger.returns import END_OF_HOLD
from app.postgres import locks
from app.postgres.database import digest, fetch_all
from app.reversals.request import OtherSum
from app.reversals.reversal import DIGESTED as OF_REVERSAL
from app.settings import INT64_MAX
from app.values.ids import POSITIONS

# Limits of one round, which is one transaction. More batches in it cost less each (1,032 µs alone, 47 µs among 200),
# but hold the organization's row for longer.
BATCHES_MAX = 200
RECIPIENTS_AT_ONCE = 20_000

# No drain, refill or suspension of this service holds the organization's row for longer than this.
_LOCK_TIMEOUT_MS = 1_000


class Outcome(NamedTuple):
    """What became of a batch: how many of its `recipients` were debited, and for how many points; None when refused.

    `is_late` if it was issued in a partition that is full, so that its issue lists what is held.
    """

    id: int
    sandbox: bool
    recipients: int
    debited_count: int | None
    debited_amount: int | None
    is_late: bool


def issue(connection: Connection, organization_id: int, *, only: int | None = None) -> list[Outcome] | None:
    """Issue (or refuse) the due batches of an organization, in order, or `only` that with this place in the queue.

    Returns what became of each batch; None when another worker owns the organization's drain. A batch that is
    delivered twice has been issued when it is read here, under the lock, and is left alone. No batch passes a due
    reversal that was accepted before it.
    """
    place = own_and_lock(connection, organization_id)
    if place is None:
        return None
    # A second statement, so that its snapshot comes after the lock: the previous owner may have issued what was queued.
    outcomes = _decide_and_write(connection, organization_id, place, only)
    short = [outcome.id for outcome in outcomes if outcome.debited_count != outcome.recipients]
    if short:
        key_limits.give_back(connection, organization_id, short)
    late = [outcome.id for outcome in outcomes if outcome.is_late]
    if late:
        list_issued(connection, organization_id, late)
    return outcomes


def own_and_lock(connection: Connection, organization_id: int) -> str | None:
    """Own the organization's drain and lock its row until the transaction ends; return the row's place, its ctid.

    None when another worker owns it. Under the lock nobody else moves the row, so it is found there at once; by its id,
    it is found past all the versions that somebody's snapshot keeps.
    """
    parameters = {
        "organization_id": organization_id,
        "drain": locks.number(locks.Kind.DRAIN, organization_id),
        "lock_timeout_ms": str(_LOCK_TIMEOUT_MS),
    }
    rows = fetch_all(connection, _OWN_AND_LOCK, parameters)
    return str(rows[0][0]) if rows else None


# Two locks in one statement. First the drain's: until this transaction ends, this is the only worker that drains the
# organization. It is tried and not waited for: a worker that finds the drain owned leaves, and the owner looks at the
# queue again after it has released it. (SKIP LOCKED on the row would not do: a refill that holds the row briefly
# would turn a worker away, and nobody would look at the queue.)
#
# Only the drain's owner goes on to the row lock. From here to the commit nobody else debits this organization; a refill
# or a suspension waits for the drain, or the drain for it. The row lock is that of `locks.lock_organization`.
#
# The wait for the row is shorter than a connection's usual lock timeout, because a worker process has other
# organizations to serve. The limit is set before the row is locked, since PostgreSQL locks rows once it has found them.
_OWN_AND_LOCK = b"""
    SELECT ctid FROM organizations
    WHERE id = %(organization_id)s AND pg_try_advisory_xact_lock(%(drain)s)
      AND set_config('lock_timeout', %(lock_timeout_ms)s, true) <> ''
    FOR NO KEY UPDATE
"""


def _decide_and_write(connection: Connection, organization_id: int, place: str, only: int | None) -> list[Outcome]:
    parameters = {
        "organization_id": organization_id,
        "place": place,
        "first": only or 1,
        "last": only or INT64_MAX,
        "batches_max": BATCHES_MAX,
        "recipients_max": RECIPIENTS_AT_ONCE,
        "disabled": OrganizationDisabled.code,
        "suspended": OrganizationSuspended.code,
        "insufficient": INSUFFICIENT_RECIPIENT,
    }
    return [Outcome._make(row) for row in fetch_all(connection, _DECIDE_AND_WRITE, parameters)]


_DECIDE_AND_WRITE = (
    files("app.ledger")
    .joinpath("issue.sql")
    .read_text()
    .format(
        is_due=IS_DUE,
        place=PLACE,
        end_of_hold=END_OF_HOLD,
        int64_max=INT64_MAX,
        listed_by_issue_to=LISTED_BY_ISSUE_TO,
        digest_refused=digest(DIGESTED, "b", refusal="o.refusal", idempotency_key="NULL", idempotency_hash="NULL"),
        digest_issued=digest(
            DIGESTED,
            "b",
            issued_at="o.now",
            organization_name="o.name",
            last_refill="CASE WHEN b.sandbox THEN o.sandbox_last_refill ELSE o.last_refill END",
        ),
    )
    .encode()
)


class Taken(NamedTuple):
    """What became of a reversal: the points taken from its `transactions` together; None when it was refused."""

    id: int
    sandbox: bool
    transactions: int
    amount: int | None


def reverse(connection: Connection, organization_id: int, *, only: int | None = None) -> list[Taken] | None:
    """Do the oldest due reversal of an organization, or `only` this; return what became of it.

    The list is empty when none is due, or when its batch is still queued: then the reversal is put aside, since the
    batch comes first. None when another worker owns the organization's drain. A reversal that is delivered twice
    has been done when it is read here, under the lock, and is left alone.
    """
    if own_and_lock(connection, organization_id) is None:
        return None
    due = oldest_due_reversal(connection, organization_id, only=only)
    if due is None:
        return []
    if due.batch_is_queued:
        postpone(connection, due.id, organization_id=organization_id, table="reversals")
        return []
    if not due.sandbox:
        # Held points are either claimed before, and then taken from their user, or every later claim finds them
        # reversed. So it is with a fold: a batch that is folded later is folded without the points taken back.
        exclude_claims(connection, organization_id)
    parameters = {
        "id": due.id,
        "organization_id": organization_id,
        "disabled": OrganizationDisabled.code,
        "not_issued": BatchNotIssued.code,
        "other_sum": OtherSum.code,
        "too_large": BalanceTooLarge.code,
    }
    statement = _REVERSE_TRANSACTIONS if due.batch_id is None else _REVERSE_BATCH
    return list(map(Taken._make, connection.execute(statement, parameters)))


_COLUMNS = """t.ctid, t.batch_id, t.position, t.debited,
           coalesce(t.points_left, t.amount, b.amount) AS points_left"""
_OF_BATCH = f"""
    SELECT t.position AS place, {_COLUMNS}
    FROM reversal r
    CROSS JOIN LATERAL (SELECT amount FROM batches
                        WHERE batches.id = r.batch_id AND organization_id = r.organization_id LIMIT 1) b
    CROSS JOIN LATERAL (SELECT ctid, * FROM transactions
                        WHERE batch_id = r.batch_id AND organization_id = r.organization_id OFFSET 0) t
"""
_OF_TRANSACTIONS = f"""
    SELECT (i.place - 1)::int AS place, {_COLUMNS}
    FROM reversal r
    CROSS JOIN LATERAL unnest(r.transaction_ids) WITH ORDINALITY AS i (id, place)
    CROSS JOIN LATERAL (SELECT ctid, * FROM transactions
                        WHERE batch_id = i.id / {POSITIONS} AND position = i.id % {POSITIONS}
                          AND organization_id = r.organization_id LIMIT 1) t
    CROSS JOIN LATERAL (SELECT amount FROM batches
                        WHERE batches.id = t.batch_id AND organization_id = r.organization_id LIMIT 1) b
"""
_STATEMENT = files("app.ledger").joinpath("reverse.sql").read_text()
_DIGEST = digest(
    OF_REVERSAL,
    "r",
    idempotency_key="CASE WHEN f.code IS NULL THEN r.idempotency_key END",
    idempotency_hash="CASE WHEN f.code IS NULL THEN r.idempotency_hash END",
    done_at="CASE WHEN f.code IS NULL THEN n.now END",
    refusal="f.code",
    codes="c.codes",
)
_NO_LONGER_LISTED = take_off_list("marked WHERE user_id IS NULL AND points_left = 0")
_REVERSE_BATCH, _REVERSE_TRANSACTIONS = (
    text(_STATEMENT.format(rows=rows, int64_max=INT64_MAX, digest=_DIGEST, no_longer_listed=_NO_LONGER_LISTED))
    for rows in (_OF_BATCH, _OF_TRANSACTIONS)
)
