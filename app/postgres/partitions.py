"""The partitions of the table of transactions: ranges of batch ids that follow each other, made ahead (decision 29).

There is no default partition: it would have to be read whole for each new partition.
"""

from typing import NamedTuple

from sqlalchemy import Connection, text

from app.postgres import locks
from app.postgres.database import transaction
from app.settings import settings

# At least so many partitions stand ready beyond that of the newest batch. One more is made, so that none is missing
# while the newest batch has just begun the next.
AHEAD_MIN = 4
_AHEAD = AHEAD_MIN + 1


class Partitions(NamedTuple):
    """How many partitions are beyond the newest batch id that was drawn, and the first id that has none.

    `newest_first` is the first id of the partition which the newest id falls into.
    """

    ahead: int
    end: int
    newest_id: int
    newest_first: int


def first_partitions(size: int) -> list[str]:
    """Return the statements that make the partitions of a new database."""
    return [
        f"CREATE TABLE {_name(first)} PARTITION OF transactions FOR VALUES FROM ({first}) TO ({first + size})"
        for first in range(0, size * (_AHEAD + 1), size)
    ]


def look(connection: Connection) -> Partitions:
    """Return how far the partitions reach."""
    return Partitions._make(connection.execute(_LOOK).one())


def make() -> None:
    """Make the partitions that are missing ahead, in a transaction of its own."""
    with transaction() as connection:
        make_ahead(connection, size=settings().partition_batch_ids)


def make_ahead(connection: Connection, *, size: int) -> int:
    """Make the partitions that are missing ahead, and return how many were made. One process at a time does.

    Whatever is stored and read meanwhile goes on: a table is made by itself and then attached, which locks the others
    only against another such change. It is made whole or not at all, with this transaction.

    Ends are multiples of `size`. Ids beyond the last end that were drawn already go into a single partition.
    """
    if look(connection).ahead >= _AHEAD:
        return 0
    locks.wait_for(connection, locks.Kind.PARTITIONS)
    ahead, end, newest_id, _ = look(connection)  # Another process may have made them.
    made = 0
    while ahead < _AHEAD:
        first, end = end, (max(end, newest_id) // size + 1) * size
        connection.execute(text(f"CREATE TABLE {_name(first)} (LIKE transactions INCLUDING ALL)"))
        connection.execute(
            text(f"ALTER TABLE transactions ATTACH PARTITION {_name(first)} FOR VALUES FROM ({first}) TO ({end})")
        )
        made += 1
        ahead += first > newest_id
    return made


def _name(first: int) -> str:
    return f"transactions_from_{first}"


# PostgreSQL keeps a bound as an expression, and words it by this function alone.
_LOOK = text(r"""
    SELECT count(*) FILTER (WHERE CAST(bounds[1] AS bigint) > newest_id), coalesce(max(CAST(bounds[2] AS bigint)), 0),
           max(newest_id),
           coalesce(max(CAST(bounds[1] AS bigint)) FILTER (WHERE CAST(bounds[1] AS bigint) <= newest_id), 0)
    FROM (SELECT last_value AS newest_id FROM batches_id_seq) sequence
    LEFT JOIN (SELECT regexp_match(pg_get_expr(c.relpartbound, c.oid), 'FROM \(''(\d+)''\) TO \(''(\d+)''\)') AS bounds
               FROM pg_inherits i JOIN pg_class c ON c.oid = i.inhrelid
               WHERE i.inhparent = CAST('transactions' AS regclass)) partitions ON true
""")
