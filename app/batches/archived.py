"""Which batches are in the archive (app/archive), or on their way: they are read and taken back here no longer.

A range of batch ids that is closing is not taken back from, and can still be read. Once it is archived, its issued
batches can be neither. What was never issued has no transaction, and stays here whole.
"""

from collections.abc import Iterable
from datetime import datetime
from typing import Self

from sqlalchemy import Connection, text

from app.errors import PointsError
from app.settings import INT64_MAX
from app.values.ids import POSITIONS, batch_and_position


class Archived(PointsError):
    """A batch is in the archive, or on its way."""

    status = 410
    field = "batch"
    says = "The batch is archived and can no longer be read or taken back here."

    @classmethod
    def since(cls, batch_id: int, archived_at: datetime) -> Self:
        """Name a batch of the archive, with the day in UTC."""
        return cls(
            f"The batch {batch_id} was archived on {archived_at:%Y-%m-%d} and can no longer be read or taken back here."
        )

    @classmethod
    def closing(cls, batch_id: int, closing_at: datetime) -> Self:
        """Name a batch on its way into the archive, with the day in UTC."""
        return cls(
            f"The batch {batch_id} is being archived since {closing_at:%Y-%m-%d} and can no longer be taken back."
        )


def require_readable(connection: Connection, batch_ids: Iterable[int], *, organization_id: int, sandbox: bool) -> None:
    """Check that the transactions of some batches are here. Ids that are no batch of theirs are passed over.

    Raises:
        Archived: for the first that is in the archive.
    """
    row = connection.execute(_ARCHIVED, _asked(batch_ids, organization_id, sandbox)).one_or_none()
    if row is not None:
        raise Archived.since(row.id, row.archived_at)


def require_open(connection: Connection, batch_ids: Iterable[int], *, organization_id: int, sandbox: bool) -> None:
    """Check that some batches can be taken back, as far as the archive is concerned.

    It is asked again under the lock of the organization (app/ledger/reverse.sql), since a range may close meanwhile.

    Raises:
        Archived: for the first that is in the archive or on its way.
    """
    row = connection.execute(_CLOSED, _asked(batch_ids, organization_id, sandbox)).one_or_none()
    if row is not None and row.archived_at is not None:
        raise Archived.since(row.id, row.archived_at)
    if row is not None:
        raise Archived.closing(row.id, row.closing_at)


def among_batches(connection: Connection, batch_ids: Iterable[int]) -> set[int]:
    """Return those of some issued batches that are in the archive."""
    return set(connection.execute(_AMONG_BATCHES, {"ids": list(batch_ids)}).scalars())


def among(connection: Connection, transaction_ids: Iterable[int], *, organization_id: int, sandbox: bool) -> set[int]:
    """Return those of some ids that are transactions of the archive."""
    parameters = {"ids": _possible(transaction_ids), "organization_id": organization_id, "sandbox": sandbox}
    return set(connection.execute(_AMONG, parameters).scalars())


def require_transaction(connection: Connection, transaction_id: int, *, organization_id: int, sandbox: bool) -> None:
    """Tell of a transaction that is not here whether it is in the archive.

    Raises:
        Archived: it is.
    """
    if among(connection, [transaction_id], organization_id=organization_id, sandbox=sandbox):
        batch_id, _ = batch_and_position(transaction_id)
        require_readable(connection, [batch_id], organization_id=organization_id, sandbox=sandbox)


_AMONG_BATCHES = text("""
    SELECT id FROM unnest(CAST(:ids AS bigint[])) AS asked (id)
    WHERE EXISTS (SELECT FROM archived_ranges
                  WHERE archived_at IS NOT NULL AND asked.id >= first_batch_id AND asked.id < end_batch_id)
""")
# The ranges of the archive, as one value that statements compare ids with. A table is asked for it only once.
RANGES = """(SELECT coalesce(range_agg(int8range(first_batch_id, end_batch_id)), '{}')
             FROM archived_ranges WHERE archived_at IS NOT NULL)"""

# Of a batch of the archive, the count of its recipients tells which positions it had.
_AMONG = text(f"""
    SELECT asked.id FROM unnest(CAST(:ids AS bigint[])) AS asked (id)
    CROSS JOIN LATERAL (SELECT recipient_count FROM batches
                        WHERE batches.id = asked.id / {POSITIONS} AND organization_id = :organization_id
                          AND sandbox = :sandbox AND status = 'issued' LIMIT 1) b
    WHERE asked.id % {POSITIONS} < b.recipient_count
      AND asked.id / {POSITIONS} <@ {RANGES}
""")


def count_reversed(connection: Connection, batch_ids: Iterable[int], *, organization_id: int) -> dict[int, int]:
    """Return how many transactions of each batch of the archive were taken back whole; a batch without any is missing.

    The transactions are gone, but what was taken from each is here, and so are the amounts.
    """
    parameters = {"batch_ids": list(batch_ids), "organization_id": organization_id}
    rows = connection.execute(_COUNT_REVERSED, parameters)
    return {batch_id: count for batch_id, count in rows}  # noqa: C416  # The rows have no type to be a dict of.


_COUNT_REVERSED = text("""
    SELECT b.id, count(*)
    FROM unnest(CAST(:batch_ids AS bigint[])) AS asked (id)
    CROSS JOIN LATERAL (SELECT id, amount, running_totals FROM batches
                        WHERE batches.id = asked.id AND organization_id = :organization_id LIMIT 1) b
    CROSS JOIN LATERAL (
        SELECT e.transaction_position + 1 AS place, sum(e.reversed) AS reversed
        FROM reversals r
        CROSS JOIN LATERAL (SELECT transaction_position, reversed FROM reversal_entries
                            WHERE reversal_id = r.id AND organization_id = :organization_id AND batch_id = b.id
                            OFFSET 0) e
        WHERE reversal_batches(r.batch_id, r.transaction_ids) @> ARRAY[b.id] AND r.organization_id = :organization_id
        GROUP BY e.transaction_position
    ) t
    WHERE t.reversed = coalesce(b.amount, b.running_totals[t.place] - coalesce(b.running_totals[t.place - 1], 0))
    GROUP BY b.id
""")


def _asked(batch_ids: Iterable[int], organization_id: int, sandbox: bool) -> dict[str, object]:
    return {"batch_ids": _possible(batch_ids), "organization_id": organization_id, "sandbox": sandbox}


def _possible(ids: Iterable[int]) -> list[int]:
    """Return those that can be ids, each once: a caller may ask for any number."""
    return sorted({id_ for id_ in ids if id_ <= INT64_MAX})


# The closing sums and claims of the archive: those of a range that is not archived yet would count twice.
SUMS, CLAIMS = (
    f"(SELECT s.* FROM {table} s JOIN archived_ranges USING (first_batch_id) WHERE archived_at IS NOT NULL) closing"
    for table in ("archived_sums", "archived_claims")
)


def is_here(batch_id: str) -> str:
    """Word in SQL whether the transactions of a batch are here, if it has any."""
    return f"NOT {batch_id} <@ {RANGES}"


def is_archived(batch_id: str) -> str:
    """Word in SQL whether a batch is in the archive, if it was issued."""
    return f"{batch_id} <@ {RANGES}"


_FIND = """
    SELECT b.id, r.closing_at AT TIME ZONE 'UTC' AS closing_at, r.archived_at AT TIME ZONE 'UTC' AS archived_at
    FROM batches b JOIN archived_ranges r ON b.id >= r.first_batch_id AND b.id < r.end_batch_id
    WHERE b.id = ANY(:batch_ids) AND b.organization_id = :organization_id AND b.sandbox = :sandbox
      AND b.status = 'issued'
"""
_CLOSED = text(f"{_FIND} ORDER BY b.id LIMIT 1")
_ARCHIVED = text(f"{_FIND} AND r.archived_at IS NOT NULL ORDER BY b.id LIMIT 1")
