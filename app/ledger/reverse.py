"""Reversing: take points back from transactions, and give them to the organization."""

from importlib.resources import files
from typing import NamedTuple

from sqlalchemy import Connection, text

from app.batches.queue import oldest_due_reversal, postpone
from app.errors import BalanceTooLarge, BatchNotIssued, OrganizationDisabled
from app.ledger.held import exclude_claims, take_off_list
from app.ledger.issue import own_and_lock
from app.postgres.database import digest
from app.reversals.read import DIGESTED
from app.settings import INT64_MAX
from app.values.ids import POSITIONS


class Taken(NamedTuple):
    """What became of a reversal: the points taken from its `transactions` together; None when it was refused."""

    id: int
    sandbox: bool
    transactions: int
    amount: int | None


def reverse(connection: Connection, organization_id: int, *, only: int | None = None) -> list[Taken] | None:
    """Do the oldest due reversal of an organization, or `only` this one; return what became of it.

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
    DIGESTED,
    "r",
    idempotency_key="CASE WHEN f.code IS NULL THEN r.idempotency_key END",
    idempotency_hash="CASE WHEN f.code IS NULL THEN r.idempotency_hash END",
    done_at="CASE WHEN f.code IS NULL THEN n.now END",
    refusal="f.code",
    codes="c.codes",
)
_NO_LONGER_LISTED = take_off_list("marked WHERE user_id IS NULL AND points_left = 0")
_REVERSE_BATCH, _REVERSE_TRANSACTIONS = (
    text(_STATEMENT.format(asked=asked, int64_max=INT64_MAX, digest=_DIGEST, no_longer_listed=_NO_LONGER_LISTED))
    for asked in (_OF_BATCH, _OF_TRANSACTIONS)
)
