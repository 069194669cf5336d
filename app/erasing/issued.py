"""The addresses of an erased user in batches and transactions: read by index, rewritten organization by organization.

A transaction of the user, or of nobody, becomes `erased-<id>`, and so does the recipient in its batch. What another
user was paid at the same address stays: it was theirs before, or is since.

Of a batch that is not issued yet the recipient counts for nothing any more. What is held for the address all the same
nobody can claim: in a sandbox, or issued between the erasure and this. A reversal takes it back.
"""

from collections.abc import Iterator, Sequence
from itertools import groupby
from operator import itemgetter
from typing import Any

from sqlalchemy import Connection, text

from app.batches.batch import DIGESTED, NOT_FINAL
from app.ledger.held_list import take_off_list
from app.ledger.issue import BATCHES_MAX, RECIPIENTS_AT_ONCE
from app.pages.addresses import ADDRESS_HASH, IN_RANGE, id_ranges
from app.postgres.database import digest, transaction
from app.postgres.locks import lock_organization
from app.reversals.accept import accept_for_nobody
from app.scope import Scope

# Organizations that a statement searches, batches that it returns of each, and never issued batches that it looks at.
_ORGANIZATIONS_MAX = 100
_FOUND_MAX = 1_000
_LOOKED_AT_MAX = 1_000

# An organization, a batch of it, and how many recipients that has.
_Batch = tuple[int, int, int]


def erase(user_id: int) -> None:
    """Rewrite every batch and transaction that has an address of an erased user.

    Another pass finds what was accepted or issued during the last pass.
    """
    while _pass(user_id):
        pass


def _pass(user_id: int) -> int:
    """Rewrite the batches that have an address, and return how many there were."""
    rewritten = 0
    for batches in _never_issued(user_id):
        rewritten += _rewrite(user_id, batches)
    after = 0
    while True:
        with transaction() as connection:
            ids = list(connection.execute(_ORGANIZATIONS, {"after": after, "limit": _ORGANIZATIONS_MAX}).scalars())
        if not ids:
            return rewritten
        of = {"user_id": user_id, "organization_ids": ids, "found_max": _FOUND_MAX}
        for statement in (_WAITING, _ISSUED):
            while batches := _select(statement, of):
                rewritten += _rewrite(user_id, batches)
        after = ids[-1]


def _select(statement: Any, parameters: dict[str, Any]) -> list[_Batch]:
    with transaction() as connection:
        return [tuple(row) for row in connection.execute(statement, parameters)]


def _never_issued(user_id: int) -> Iterator[list[_Batch]]:
    """Yield the refused, cancelled and rejected batches that have an address, looking at a bounded number at a time."""
    place = {"organization_id": 0, "id": 0}
    while True:
        with transaction() as connection:
            rows: Sequence[Any] = connection.execute(
                _NEVER_ISSUED, {"user_id": user_id, "looked_at_max": _LOOKED_AT_MAX, **place}
            ).all()
        if not rows:
            return
        yield [(row.organization_id, row.id, row.recipient_count) for row in rows if row.has_address]
        place = {"organization_id": rows[-1].organization_id, "id": rows[-1].id}


def _rewrite(user_id: int, batches: Sequence[_Batch]) -> int:
    for organization_id, rows in groupby(sorted(batches), key=itemgetter(0)):
        for batch_ids in _parts(list(rows)):
            with transaction() as connection:
                # No drain, return or reversal of the organization works on these rows meanwhile.
                lock_organization(connection, organization_id)
                _rewrite_batches(connection, user_id, organization_id, batch_ids)
    return len(batches)


def _parts(rows: Sequence[_Batch]) -> Iterator[list[int]]:
    """Cut the batches of an organization into parts no larger than a drain's, so that its sends wait no longer."""
    part: list[int] = []
    recipients = 0
    for _, batch_id, count in rows:
        if part and (len(part) == BATCHES_MAX or recipients + count > RECIPIENTS_AT_ONCE):
            yield part
            part, recipients = [], 0
        part.append(batch_id)
        recipients += count
    yield part


def _rewrite_batches(connection: Connection, user_id: int, organization_id: int, batch_ids: list[int]) -> None:
    parameters = {"user_id": user_id, "organization_id": organization_id, "batch_ids": batch_ids}
    # Read before they are rewritten.
    held = connection.execute(_HELD, parameters).all()
    connection.execute(_REWRITE, parameters)
    for sandbox, transaction_ids in held:
        accept_for_nobody(connection, Scope(organization_id, sandbox), transaction_ids, reason=_ERASED)


_ERASED = "The user was erased."


_ORGANIZATIONS = text("SELECT id FROM organizations WHERE id > :after ORDER BY id LIMIT :limit")

_KNOWN = "known AS MATERIALIZED (SELECT email_key, last_batch_id FROM former_addresses WHERE user_id = :user_id)"
# A user of a sandbox who was erased with this user has the same address.
_IS_THEIRS = """(t.user_id = :user_id OR (
    k.last_batch_id >= t.batch_id
    AND (t.user_id IS NULL
         OR t.sandbox AND EXISTS (SELECT FROM users s WHERE s.id = t.user_id AND s.sandbox_of = t.organization_id
                                                        AND s.erased_at IS NOT NULL))))"""

# Each organization and mode has its own part of the index of addresses.
_ISSUED = text(f"""
    WITH {_KNOWN}, ranges AS MATERIALIZED (SELECT id_range FROM {id_ranges()})
    SELECT DISTINCT o.id, t.batch_id, b.recipient_count
    FROM unnest(CAST(:organization_ids AS bigint[])) AS o (id)
    CROSS JOIN (VALUES (false), (true)) AS m (sandbox)
    CROSS JOIN known k
    CROSS JOIN LATERAL (
        SELECT t.batch_id FROM ranges
        CROSS JOIN LATERAL (
            SELECT t.batch_id FROM transactions t
            WHERE {IN_RANGE}
              AND {ADDRESS_HASH} = CAST(hashtextextended(k.email_key, o.id * 2 + m.sandbox::int) >> 32 AS int)
              AND coalesce(t.email_key, t.email) = k.email_key AND t.organization_id = o.id AND t.sandbox = m.sandbox
              AND {_IS_THEIRS}
            LIMIT :found_max
        ) t
        LIMIT :found_max
    ) t
    CROSS JOIN LATERAL (SELECT recipient_count FROM batches WHERE id = t.batch_id LIMIT 1) b
""")

_HAS_ADDRESS = """EXISTS (SELECT FROM former_addresses k
                          WHERE k.user_id = :user_id AND k.last_batch_id >= b.id
                            AND k.email_key = ANY(coalesce(b.email_keys, b.emails)))"""
# Each status has its own index.
_OF_A_STATUS = f"""
    SELECT organization_id, id, recipient_count FROM batches b
    WHERE organization_id = ANY(:organization_ids) AND status = '{{}}' AND {_HAS_ADDRESS}
"""
_WAITING = text(f"{' UNION ALL '.join(map(_OF_A_STATUS.format, NOT_FINAL))} LIMIT :found_max")
_NEVER_ISSUED = text(f"""
    SELECT organization_id, id, recipient_count, {_HAS_ADDRESS} AS has_address
    FROM (SELECT * FROM batches
          WHERE status IN ('refused', 'cancelled', 'rejected') AND (organization_id, id) > (:organization_id, :id)
          ORDER BY organization_id, id LIMIT :looked_at_max) b
    ORDER BY organization_id, id
""")

_HELD = text(f"""
    WITH {_KNOWN}
    SELECT t.sandbox, array_agg(transaction_id(t.batch_id, t.position))
    FROM transactions t JOIN known k ON k.email_key = coalesce(t.email_key, t.email) AND k.last_batch_id >= t.batch_id
    WHERE t.batch_id = ANY(:batch_ids) AND t.organization_id = :organization_id
      AND t.user_id IS NULL AND t.debited AND t.points_left IS DISTINCT FROM 0
    GROUP BY t.sandbox
""")
_NO_HASH = "CASE WHEN b.idempotency_hash IS NOT NULL THEN CAST('' AS bytea) END"
_REWRITE = text(f"""
    WITH {_KNOWN}, theirs AS MATERIALIZED (
        SELECT t.batch_id, t.position, 'erased-' || coalesce(t.user_id, :user_id) AS name, k.email_key, t.sandbox,
               t.organization_id
        FROM transactions t JOIN known k ON k.email_key = coalesce(t.email_key, t.email)
        WHERE t.batch_id = ANY(:batch_ids) AND t.organization_id = :organization_id AND {_IS_THEIRS}
        UNION ALL
        SELECT b.id, r.place - 1, 'erased-' || CAST(:user_id AS bigint), k.email_key, b.sandbox, b.organization_id
        FROM batches b
        CROSS JOIN LATERAL unnest(coalesce(b.email_keys, b.emails)) WITH ORDINALITY AS r (email_key, place)
        JOIN known k ON k.email_key = r.email_key AND k.last_batch_id >= b.id
        WHERE b.id = ANY(:batch_ids) AND b.organization_id = :organization_id AND b.status <> 'issued'
    ), rewritten AS (
        UPDATE transactions t SET email = x.name, email_key = NULL
        FROM theirs x
        WHERE (t.batch_id, t.position) = (x.batch_id, x.position) AND t.organization_id = :organization_id
    ), no_longer_listed AS (
        -- Its hash would tell whether a guess of the address is right. Nobody claims what is held past its end.
        {take_off_list("theirs")}
    ), recipients AS (
        SELECT b.id, r.place, coalesce(x.name, r.email) AS email, coalesce(x.name, r.email_key) AS email_key,
               sum(CASE WHEN x.name IS NULL THEN coalesce(r.total - r.before, b.amount) ELSE 0 END)
                   OVER (PARTITION BY b.id ORDER BY r.place) AS total
        FROM batches b
        CROSS JOIN LATERAL (SELECT coalesce(b.payable_totals, b.running_totals) AS totals) its
        CROSS JOIN LATERAL unnest(b.emails, coalesce(b.email_keys, b.emails), its.totals,
                                  (0::bigint || its.totals)[1 : b.recipient_count]) WITH ORDINALITY
                               AS r (email, email_key, total, before, place)
        LEFT JOIN theirs x ON x.batch_id = b.id AND x.position = r.place - 1
        WHERE b.id IN (SELECT batch_id FROM theirs) AND b.organization_id = :organization_id
    ), of_batches AS (
        SELECT id, array_agg(email ORDER BY place) AS emails, array_agg(email_key ORDER BY place) AS email_keys,
               array_agg(CAST(total AS bigint) ORDER BY place) AS totals
        FROM recipients GROUP BY id
    )
    UPDATE batches b
    SET emails = r.emails, email_keys = nullif(r.email_keys, r.emails), idempotency_hash = {_NO_HASH},
        payable_totals = CASE WHEN b.status IN {NOT_FINAL} THEN r.totals ELSE b.payable_totals END,
        digest = {digest(DIGESTED, "b", idempotency_hash=_NO_HASH)}
    FROM of_batches r WHERE b.id = r.id AND b.organization_id = :organization_id
""")
