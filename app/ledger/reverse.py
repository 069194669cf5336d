"""Reversing: take points back from transactions, and give them to the organization."""

from importlib.resources import files
from typing import NamedTuple

from sqlalchemy import Connection, text

from app.batches.queue import oldest_due_reversal, postpone_reversal
from app.errors import BalanceTooLarge, BatchNotIssued, OrganizationDisabled
from app.ledger.claim import exclude_claims
from app.ledger.issue import own_and_lock
from app.postgres.digests import digest
from app.reversals.read import DIGESTED
from app.settings import INT64_MAX
from app.values.ids import POSITIONS


class Taken(NamedTuple):
    """What became of a reversal: the points taken from its `transactions` together; None when it was refused."""

    reversal_id: int
    sandbox: bool
    transactions: int
    amount: int | None


def reverse(connection: Connection, organization_id: int, *, only: int | None = None) -> list[Taken] | None:
    """Do the oldest due reversal of an organization, or `only` this one; return what became of it.

    The list is empty when none is due, or when its batch is still queued: then the reversal is put aside, since the
    batch comes first. None when another worker owns the organization's drain. A reversal that is delivered twice
    has been done when it is read here, under the lock, and is left alone.
    """
    if not own_and_lock(connection, organization_id):
        return None
    due = oldest_due_reversal(connection, organization_id, only=only)
    if due is None:
        return []
    if due.batch_is_queued:
        postpone_reversal(connection, due.id)
        return []
    unfolded = [] if due.sandbox else _lock_what_is_credited(connection, due.id)
    parameters = {
        "id": due.id,
        "unfolded": unfolded,
        "disabled": OrganizationDisabled.code,
        "not_issued": BatchNotIssued.code,
        "too_large": BalanceTooLarge.code,
    }
    statement = _REVERSE_TRANSACTIONS if due.batch_id is None else _REVERSE_BATCH
    return list(map(Taken._make, connection.execute(statement, parameters)))


def _lock_what_is_credited(connection: Connection, reversal_id: int) -> list[int]:
    """Take the locks of a live reversal, in the same order as everywhere; return its batches that are unfolded.

    First, claims are excluded. Held points are either claimed before, and then taken from their user, or every later
    claim finds them reversed.

    Then the unfolded batches are locked, in the order of a fold. A fold that is running is waited for. A batch locked
    here is folded later, without the points taken back.

    Last, the users are locked in the order of their ids, as by a fold and a claim.
    """
    exclude_claims(connection)
    unfolded = list(connection.execute(_LOCK_UNFOLDED, {"id": reversal_id}).scalars())
    connection.execute(_LOCK_USERS, {"id": reversal_id, "unfolded": unfolded})
    return unfolded


# The transactions of a reversal, each looked up by itself.
_ASKED = f"""
    reversals r
    CROSS JOIN LATERAL (
        SELECT x.* FROM transactions x WHERE x.batch_id = r.batch_id
        UNION ALL
        SELECT x.* FROM unnest(r.transaction_ids) AS asked (id)
        CROSS JOIN LATERAL (SELECT * FROM transactions
                            WHERE batch_id = asked.id / {POSITIONS} AND position = asked.id % {POSITIONS} LIMIT 1) x
    ) t
"""
_LOCK_UNFOLDED = text(f"""
    SELECT batch_id FROM unfolded_batches
    WHERE batch_id = ANY(ARRAY(SELECT r.batch_id FROM reversals r WHERE r.id = :id AND r.batch_id IS NOT NULL
                               UNION SELECT unnest(r.transaction_ids) / {POSITIONS} FROM reversals r WHERE r.id = :id))
    ORDER BY batch_id FOR UPDATE
""")
_LOCK_USERS = text(f"""
    SELECT FROM (SELECT DISTINCT t.user_id FROM {_ASKED}
                 WHERE r.id = :id AND t.user_id IS NOT NULL
                   AND (t.claimed_at IS NOT NULL OR t.batch_id <> ALL (CAST(:unfolded AS bigint[])))
                 ORDER BY t.user_id) AS credited
    CROSS JOIN LATERAL (SELECT FROM users WHERE users.id = credited.user_id FOR NO KEY UPDATE) AS locked
""")

_COLUMNS = """t.ctid, t.batch_id, t.position, t.debited,
           coalesce(t.points_left, t.amount, b.amount) AS points_left"""
_OF_BATCH = f"""
    SELECT t.position AS place, {_COLUMNS}
    FROM reversal r
    CROSS JOIN LATERAL (SELECT amount FROM batches WHERE batches.id = r.batch_id LIMIT 1) b
    CROSS JOIN LATERAL (SELECT ctid, * FROM transactions WHERE batch_id = r.batch_id OFFSET 0) t
"""
_OF_TRANSACTIONS = f"""
    SELECT (i.place - 1)::int AS place, {_COLUMNS}
    FROM reversal r
    CROSS JOIN LATERAL unnest(r.transaction_ids) WITH ORDINALITY AS i (id, place)
    CROSS JOIN LATERAL (SELECT ctid, * FROM transactions
                        WHERE batch_id = i.id / {POSITIONS} AND position = i.id % {POSITIONS} LIMIT 1) t
    CROSS JOIN LATERAL (SELECT amount FROM batches WHERE batches.id = t.batch_id LIMIT 1) b
"""
_STATEMENT = files("app.ledger").joinpath("reverse.sql").read_text()
_DIGEST = digest(
    DIGESTED,
    "r",
    idempotency_key="CASE WHEN f.code IS NULL THEN r.idempotency_key END",
    idempotency_hash="CASE WHEN f.code IS NULL THEN r.idempotency_hash END",
    done_at="CASE WHEN f.code IS NULL THEN n.now END",
    refusal="f.code",
    codes="c.codes",
)
_REVERSE_BATCH, _REVERSE_TRANSACTIONS = (
    text(_STATEMENT.format(asked=asked, int64_max=INT64_MAX, digest=_DIGEST)) for asked in (_OF_BATCH, _OF_TRANSACTIONS)
)
