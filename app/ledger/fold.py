"""Folding: the credits of issued batches are added to the users' balances, and what was claimed is taken off the held
sums of the organizations, many at a time."""

from sqlalchemy import Connection, text

from app.postgres import locks

# The limits of a fold, which is one transaction. It updates each balance once, even if many of its batches paid it.
ORGANIZATIONS_MAX = 250
BATCHES_MAX = 500
RECIPIENTS_AT_ONCE = 50_000


def fold(connection: Connection) -> int:
    """Fold batches of the organizations that wait longest, within the limits, in this transaction; return how many.

    Each organization has the same share of the limits, so that a busy organization does not hold up the others.

    A fold credits nothing: a transaction is credited when it is issued, and `app.users` counts it from then on. A fold
    adds the credits to `user_balances`, writes them as entries, and removes the batch from the list in one
    transaction, so each credit is always counted once. If another fold runs, it leaves the other's batches alone.
    """
    organization_ids = _exclude_reversals(connection)
    if not organization_ids:
        return 0
    limits = {"batches_max": max(1, BATCHES_MAX // len(organization_ids)), "recipients_max": RECIPIENTS_AT_ONCE}
    taken = connection.execute(_TAKE, {"organization_ids": organization_ids, **limits}).all()
    if taken:
        owners, batch_ids = ([row[place] for row in taken] for place in (0, 1))
        connection.execute(_ADD, {"organization_ids": owners, "batch_ids": batch_ids})
    return len(taken)


def _exclude_reversals(connection: Connection) -> list[int]:
    """Share the balances of the organizations that wait longest; return those for which that could be.

    A fold waits for a reversal only while it holds nothing: otherwise the reversal of an organization would hold up
    those of others, and the claims behind these.
    """
    waiting = list(connection.execute(_WAIT_LONGEST, {"at_most": ORGANIZATIONS_MAX}).scalars())
    free = locks.try_to_share(connection, locks.Kind.BALANCES, waiting)
    if waiting and not free:
        free = waiting[:1]
        locks.share(connection, locks.Kind.BALANCES, free)
    return free


# Each organization is read by one look-up in the index, however many batches it has there.
_WAIT_LONGEST = text("""
    WITH RECURSIVE oldest AS (
        (SELECT organization_id, batch_id FROM unfolded_batches ORDER BY organization_id, batch_id LIMIT 1)
        UNION ALL
        SELECT u.organization_id, u.batch_id FROM oldest o
        CROSS JOIN LATERAL (SELECT organization_id, batch_id FROM unfolded_batches
                            WHERE organization_id > o.organization_id
                            ORDER BY organization_id, batch_id LIMIT 1) u
    )
    SELECT organization_id FROM oldest ORDER BY batch_id LIMIT :at_most
""")

# At least one batch; more only within the limits. The recipients are counted in turns: the first batch of each
# organization, then the second of each.
_TAKE = text("""
    WITH oldest AS (
        SELECT f.organization_id, f.batch_id,
               sum(b.recipient_count) OVER (ORDER BY f.turn, f.organization_id) - b.recipient_count AS before
        FROM unnest(CAST(:organization_ids AS bigint[])) AS o (id)
        CROSS JOIN LATERAL (SELECT organization_id, batch_id, row_number() OVER (ORDER BY batch_id) AS turn
                            FROM (SELECT organization_id, batch_id FROM unfolded_batches WHERE organization_id = o.id
                                  ORDER BY organization_id, batch_id LIMIT :batches_max
                                  FOR UPDATE SKIP LOCKED) first) f
        CROSS JOIN LATERAL (SELECT recipient_count FROM batches
                            WHERE id = f.batch_id AND organization_id = f.organization_id LIMIT 1) b
    )
    DELETE FROM unfolded_batches f USING oldest o
    WHERE f.organization_id = o.organization_id AND f.batch_id = o.batch_id
      AND (o.before = 0 OR o.before < :recipients_max)
    RETURNING f.organization_id, f.batch_id
""")

# Points taken back are left out of the balance, and so are claimed transactions: the claim itself adds them. An entry
# is the whole credit, since what was taken back of it is an entry too. Sorted by user, they touch few index pages. The
# balances come in the order in which a claim takes them, so that the two never deadlock.
#
# OFFSET 0 makes PostgreSQL read the transactions batch by batch. It estimates thousands of rows for every batch, so for
# a few large batches it would choose a join that reads far too much.
_ADD = text("""
    WITH paid AS MATERIALIZED (
        SELECT paid.user_id, folded.organization_id, transaction_id(folded.id, paid.position) AS transaction_id,
               b.issued_at, coalesce(paid.points_left, paid.amount, b.amount) AS points
        FROM unnest(CAST(:organization_ids AS bigint[]), CAST(:batch_ids AS bigint[])) AS folded (organization_id, id)
        CROSS JOIN LATERAL (SELECT user_id, position, amount, points_left FROM transactions
                            WHERE batch_id = folded.id AND organization_id = folded.organization_id
                              AND credited AND claimed_at IS NULL OFFSET 0) AS paid
        CROSS JOIN LATERAL (SELECT amount, issued_at FROM batches
                            WHERE batches.id = folded.id AND organization_id = folded.organization_id LIMIT 1) b
    ), entries AS (
        INSERT INTO user_entries (user_id, organization_id, created_at, transaction_id)
        SELECT user_id, organization_id, issued_at, transaction_id FROM paid
        ORDER BY user_id, issued_at, transaction_id
    )
    INSERT INTO user_balances (user_id, organization_id, points)
    SELECT user_id, organization_id, sum(points) FROM paid
    GROUP BY organization_id, user_id ORDER BY organization_id, user_id
    ON CONFLICT (user_id, organization_id) DO UPDATE SET points = user_balances.points + excluded.points
""")


def fold_claims(connection: Connection) -> int:
    """Take what claims have credited off the held sum of an organization; return 0 when none can be taken.

    An organization whose row somebody has locked waits for the next run.
    """
    organization_id: int | None = connection.execute(_LOCK_ONE_OF_CLAIMS).scalar()
    if organization_id is None:
        return 0
    connection.execute(_TAKE_OFF, {"id": organization_id})
    return 1


_LOCK_ONE_OF_CLAIMS = text("""
    SELECT id FROM organizations WHERE id = ANY(ARRAY(SELECT DISTINCT organization_id FROM unfolded_claims))
    LIMIT 1 FOR NO KEY UPDATE SKIP LOCKED
""")
_TAKE_OFF = text("""
    WITH taken AS (
        DELETE FROM unfolded_claims WHERE organization_id = :id RETURNING points, count
    )
    UPDATE organizations SET held_points = held_points - t.points, held_count = held_count - t.count
    FROM (SELECT coalesce(sum(points), 0) AS points, coalesce(sum(count), 0) AS count FROM taken) t
    WHERE id = :id
""")
