"""Folding: the credits of issued batches are added to the users' balances, and what was claimed is taken off the held
sums of the organizations, many at a time."""

from sqlalchemy import Connection, text

from app.postgres import locks

# The limits of one fold, which is one transaction. It updates each user once, even if many of its batches paid them.
BATCHES_MAX = 500
RECIPIENTS_MAX = 50_000


def fold(connection: Connection) -> int:
    """Fold the oldest unfolded batches, within the limits, in this transaction; return how many.

    A fold credits nothing: a transaction is credited when it is issued, and `app.users` counts it from then on. A fold
    adds the credits to `folded_balance`, writes them as entries, and removes the batch from the list in one
    transaction, so each credit is always counted once.
    """
    # If another fold runs, leave the work to it.
    if not locks.try_to_take(connection, locks.Kind.FOLD):
        return 0
    batch_ids = list(
        connection.execute(_TAKE, {"batches_max": BATCHES_MAX, "recipients_max": RECIPIENTS_MAX}).scalars()
    )
    if batch_ids:
        # Lock the users' rows first and in one order, as a claim does, so that the two never deadlock.
        connection.execute(_LOCK_USERS, {"batch_ids": batch_ids})
        connection.execute(_ADD, {"batch_ids": batch_ids})
    return len(batch_ids)


# At least one batch; more only within the limits. They are locked in the same order as by a reversal.
_TAKE = text("""
    WITH oldest AS (
        SELECT f.batch_id, sum(b.recipient_count) OVER (ORDER BY f.batch_id) - b.recipient_count AS before
        FROM (SELECT batch_id FROM unfolded_batches ORDER BY batch_id LIMIT :batches_max FOR UPDATE) f
        JOIN batches b ON b.id = f.batch_id
    )
    DELETE FROM unfolded_batches f USING oldest o
    WHERE f.batch_id = o.batch_id AND (o.before = 0 OR o.before < :recipients_max)
    RETURNING f.batch_id
""")

# OFFSET 0 makes PostgreSQL read the transactions batch by batch. It estimates thousands of rows for every batch, so for
# a few large batches it would choose a join that reads far too much.
_PAID = """
    FROM unnest(CAST(:batch_ids AS bigint[])) AS folded (id)
    CROSS JOIN LATERAL (SELECT user_id, position, amount, points_left FROM transactions
                        WHERE batch_id = folded.id AND credited AND claimed_at IS NULL OFFSET 0) AS paid
"""

_LOCK_USERS = text(f"""
    SELECT FROM (SELECT DISTINCT paid.user_id {_PAID} ORDER BY paid.user_id) AS paid
    CROSS JOIN LATERAL (SELECT FROM users WHERE users.id = paid.user_id FOR NO KEY UPDATE) AS locked
""")

# Points taken back are left out of the balance, and so are claimed transactions: the claim itself adds them. An entry
# is the whole credit, since what was taken back of it is an entry too. Sorted by user, they touch few index pages.
_ADD = text(f"""
    WITH paid AS MATERIALIZED (
        SELECT paid.user_id, transaction_id(folded.id, paid.position) AS transaction_id, b.issued_at,
               coalesce(paid.points_left, paid.amount, b.amount) AS points
        {_PAID} CROSS JOIN LATERAL (SELECT amount, issued_at FROM batches WHERE batches.id = folded.id LIMIT 1) b
    ), entries AS (
        INSERT INTO user_entries (user_id, created_at, transaction_id)
        SELECT user_id, issued_at, transaction_id FROM paid ORDER BY user_id, issued_at, transaction_id
    )
    UPDATE users SET folded_balance = users.folded_balance + credits.points
    FROM (SELECT user_id, sum(points) AS points FROM paid GROUP BY user_id) AS credits
    WHERE users.id = credits.user_id
""")


def fold_claims(connection: Connection) -> int:
    """Take what claims have credited off the held sum of one organization; return 0 when none can be taken.

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
