"""What the transactions of issued batches come to now, by state: how many they are, and for how many points."""

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
    row = connection.execute(_SUMS, {"batch_ids": list(batch_ids), "organization_id": organization_id}).one()
    return StateSums(*(Sum(int(count), int(points)) for count, points in zip(row[::2], row[1::2], strict=True)))


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
          FROM unnest(CAST(:batch_ids AS bigint[])) AS asked (id)
          CROSS JOIN LATERAL (SELECT amount FROM batches
                              WHERE batches.id = asked.id AND organization_id = :organization_id LIMIT 1) b
          CROSS JOIN LATERAL (SELECT * FROM transactions
                              WHERE batch_id = asked.id AND organization_id = :organization_id OFFSET 0) t) states
""")


class StateCounts(NamedTuple):
    """How many transactions of a batch are in two of the states now; the other counts follow from these."""

    credited: int = 0
    reversed: int = 0


def count_states(connection: Connection, batch_ids: Sequence[int], *, organization_id: int) -> dict[int, StateCounts]:
    """Return how many transactions of each batch are credited or reversed now; a batch without any may be missing."""
    rows = connection.execute(_COUNT_STATES, {"batch_ids": list(batch_ids), "organization_id": organization_id})
    return {batch_id: StateCounts(*counts) for batch_id, *counts in rows}


_COUNT_STATES = text("""
    SELECT batch_id, count(*) FILTER (WHERE points_left IS DISTINCT FROM 0), count(*) FILTER (WHERE points_left = 0)
    FROM transactions
    WHERE batch_id = ANY(:batch_ids) AND organization_id = :organization_id AND (credited OR points_left = 0)
    GROUP BY batch_id
""")
