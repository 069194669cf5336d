"""The sums of batches by state: what is credited, held, unpaid, taken back and returned."""

from collections.abc import Sequence
from typing import NamedTuple

from sqlalchemy import Connection, text


class Sum(NamedTuple):
    """A number of transactions, and their points."""

    transactions: int
    points: int


class StateSums(NamedTuple):
    """The sums by state. What was taken back of a transaction is in `reversed`, and what is left in its own state.

    `returned` are the points that were held for too long.
    """

    credited: Sum
    held: Sum
    unpaid: Sum
    reversed: Sum
    returned: Sum


def sums_of(connection: Connection, batch_ids: Sequence[int], *, organization_id: int) -> StateSums:
    """Return the sums of these batches of an organization together. It reads all their transactions."""
    parameters = {"batch_ids": list(batch_ids), "organization_id": organization_id}
    row = connection.execute(_SUMS, parameters).one()
    sums = StateSums(*(Sum(int(count), int(points)) for count, points in zip(row[::2], row[1::2], strict=True)))
    if not sums.returned.transactions:
        return sums
    # A returned transaction does not tell how much of it was taken back before: the entries of the reversals do.
    taken = Sum(*map(int, connection.execute(_TAKEN_BACK, parameters).one()))
    returned = sums.returned.points - (taken.points - sums.reversed.points)
    return sums._replace(reversed=taken, returned=sums.returned._replace(points=returned))


# Of each state the condition, and the points that it stands for.
_STATES = {
    "credited": ("credited AND points_left > 0", "points_left"),
    "held": ("debited AND NOT credited AND points_left > 0", "points_left"),
    "unpaid": ("NOT debited", "amount"),
    "reversed": ("points_left < amount AND NOT returned", "amount - points_left"),
    "returned": ("returned", "amount"),
}
assert tuple(_STATES) == StateSums._fields

_COLUMNS = ", ".join(
    f"count(*) FILTER (WHERE {condition}), coalesce(sum({points}) FILTER (WHERE {condition}), 0)"
    for condition, points in _STATES.values()
)
# OFFSET 0 makes PostgreSQL read the transactions batch by batch.
_SUMS = text(f"""
    SELECT {_COLUMNS}
    FROM (SELECT t.debited, t.credited, coalesce(t.amount, b.amount) AS amount,
                 coalesce(t.points_left, t.amount, b.amount) AS points_left, t.returned_at IS NOT NULL AS returned
          FROM unnest(CAST(:batch_ids AS bigint[])) AS ids (id)
          CROSS JOIN LATERAL (SELECT amount FROM batches
                              WHERE batches.id = ids.id AND organization_id = :organization_id LIMIT 1) b
          CROSS JOIN LATERAL (SELECT * FROM transactions
                              WHERE batch_id = ids.id AND organization_id = :organization_id OFFSET 0) t) states
""")

_TAKEN_BACK = text("""
    SELECT count(DISTINCT transaction_id(e.batch_id, e.transaction_position)), coalesce(sum(e.reversed), 0)
    FROM unnest(CAST(:batch_ids AS bigint[])) AS ids (id)
    CROSS JOIN LATERAL (SELECT id FROM reversals
                        WHERE reversal_batches(batch_id, transaction_ids) @> ARRAY[ids.id]
                          AND status = 'done' AND NOT is_return OFFSET 0) r
    CROSS JOIN LATERAL (SELECT * FROM reversal_entries
                        WHERE reversal_id = r.id AND organization_id = :organization_id
                          AND batch_id = ids.id AND reversed > 0 OFFSET 0) e
""")
