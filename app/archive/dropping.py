"""Dropping a partition that the archive holds, so that no send waits for it; and its batches' recipients."""

from sqlalchemy import Connection, text

from app.archive import ranges
from app.archive.ranges import Range
from app.postgres import partitions
from app.postgres.connections import disable_timeouts
from app.postgres.database import transaction

# How many batches one transaction takes the recipients off.
_STEP = 2_000


def is_there(connection: Connection, first: int) -> bool:
    """Tell whether the rows of a range are still in the database, attached or not."""
    found: bool = connection.execute(_IS_THERE, {"name": partitions.name(first)}).scalar_one()
    return found


_IS_THERE = text("SELECT to_regclass(:name) IS NOT NULL")


def detach(alone: Connection, first: int) -> None:
    """Detach a partition, or go on where that was interrupted.

    It is detached while others read and write the table: who uses it is waited for, and nobody waits. So it takes
    several transactions. In between, the range is archived already, and no statement asks the partition.
    """
    disable_timeouts(alone)
    attached = {one.first: one.is_pending for one in partitions.attached(alone)}
    if first in attached:
        how = "FINALIZE" if attached[first] else "CONCURRENTLY"
        alone.exec_driver_sql(f"ALTER TABLE transactions DETACH PARTITION {partitions.name(first)} {how}")


def drop(alone: Connection, first: int) -> None:
    """Drop a partition that is detached."""
    alone.exec_driver_sql(f"DROP TABLE IF EXISTS {partitions.name(first)}")


def attach_again(connection: Connection, closed: Range) -> None:
    """Attach a partition that was detached and not dropped; one whose detaching was interrupted is detached first."""
    attached = {one.first: one.is_pending for one in partitions.attached(connection)}
    table = partitions.name(closed.first)
    if attached.get(closed.first):
        connection.exec_driver_sql(f"ALTER TABLE transactions DETACH PARTITION {table} FINALIZE")
    if attached.get(closed.first, True):
        bounds = f"FROM ({closed.first}) TO ({closed.end})"
        connection.exec_driver_sql(f"ALTER TABLE transactions ATTACH PARTITION {table} FOR VALUES {bounds}")


def empty_batches(closed: Range) -> None:
    """Take the recipients off the issued batches of a dropped range, and note that it is done."""
    first = closed.first
    while True:
        with transaction() as connection:
            last: int | None = connection.execute(_LAST, {"first": first, "end": closed.end, "step": _STEP}).scalar()
            if last is None:
                ranges.note_emptied(connection, closed.first)
                return
            connection.execute(_EMPTY, {"first": first, "last": last})
        first = last + 1


_LAST = text("""
    SELECT max(id) FROM (SELECT id FROM batches WHERE id >= :first AND id < :end ORDER BY id LIMIT :step) step
""")
_EMPTY = text("""
    UPDATE batches b
    SET archived_at = r.archived_at, emails = '{}', email_keys = NULL, labels = NULL, item_references = NULL
    FROM archived_ranges r
    WHERE b.id BETWEEN :first AND :last AND b.status = 'issued' AND b.archived_at IS NULL
      AND b.id >= r.first_batch_id AND b.id < r.end_batch_id
""")
