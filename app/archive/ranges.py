"""The ranges that are on their way into the archive: which may go, and how far each is."""

from datetime import datetime
from typing import NamedTuple

from sqlalchemy import Connection, text

from app.archive import lately
from app.postgres import partitions
from app.values.payloads import NOT_FINAL


class Range(NamedTuple):
    """A closed range of batch ids; the columns are described at the table."""

    first: int
    end: int
    rewritten: int
    file: str | None
    sha256: bytes | None
    batches_sha256: bytes | None
    transactions: int | None
    is_archived: bool
    is_emptied: bool

    @property
    def name(self) -> str:
        """The name that its first files begin with."""
        return f"batches-{self.first}-to-{self.end - 1}"

    @property
    def stem(self) -> str:
        """The name that its files begin with now: another one, once they were written anew for an erased user."""
        return self.file or self.name


_RANGES = """
    SELECT first_batch_id, end_batch_id, rewritten, file, sha256, batches_sha256, transactions,
           archived_at IS NOT NULL, emptied_at IS NOT NULL
    FROM archived_ranges
"""


def get(connection: Connection, first: int) -> Range:
    return Range._make(connection.execute(_ONE, {"first": first}).one())


_ONE = text(f"{_RANGES} WHERE first_batch_id = :first")


def closed(connection: Connection) -> list[Range]:
    """Return all ranges that are closed or archived, the oldest first."""
    return [Range._make(row) for row in connection.execute(_ALL)]


_ALL = text(f"{_RANGES} ORDER BY first_batch_id")


def close(connection: Connection, first: int, end: int) -> None:
    """Close a range: from the commit on, nothing of it is taken back any more."""
    connection.execute(_CLOSE, {"first": first, "end": end})


_CLOSE = text("INSERT INTO archived_ranges (first_batch_id, end_batch_id) VALUES (:first, :end)")


def reopen(connection: Connection, first: int) -> None:
    """Give up the closing of a range that has to wait after all."""
    connection.execute(_REOPEN, {"first": first})


_REOPEN = text("DELETE FROM archived_ranges WHERE first_batch_id = :first AND compared_at IS NULL")


def why_not(connection: Connection, first: int, end: int, *, before: datetime) -> str | None:
    """Return why a range cannot go into the archive yet; None if it can. What is quick to see is looked at first."""
    if end > partitions.look(connection).newest_first:
        return "it is not full"
    parameters = {"first": first, "end": end, "before": before}
    for statement in (_QUICK, _BATCHES):
        reason: str | None = connection.execute(statement, parameters).scalar()
        if reason is not None:
            return reason
    return lately.why_not(connection, first, end)


_IS_IN_RANGE = "batch_id >= :first AND batch_id < :end"
_HELD = f"SELECT FROM transactions WHERE {_IS_IN_RANGE} AND debited AND NOT credited AND points_left IS DISTINCT FROM 0"
_OVER_AT = "coalesce(issued_at, cancelled_at, rejected_at, created_at)"
_QUICK = text(f"""
    SELECT CASE
        WHEN (SELECT {_OVER_AT} FROM batches WHERE id >= :first AND id < :end ORDER BY id DESC LIMIT 1) >= :before
            THEN 'its newest batch is not older than that day'
        WHEN EXISTS ({_HELD} AND NOT sandbox) OR EXISTS ({_HELD} AND sandbox) THEN 'points of it are held'
        WHEN coalesce((SELECT max(listed_to) FROM held_listing), 0) < :end
            THEN 'what was held in it is not listed yet'
        WHEN EXISTS (SELECT FROM unfolded_batches WHERE {_IS_IN_RANGE}) THEN 'credits of it are not folded yet'
        WHEN EXISTS (SELECT FROM reversals r
                     CROSS JOIN LATERAL unnest(reversal_batches(r.batch_id, r.transaction_ids)) AS asked (batch_id)
                     WHERE r.status = 'queued' AND asked.batch_id >= :first AND asked.batch_id < :end)
            THEN 'a reversal of it is queued' END
""")
_BATCHES = text(f"""
    SELECT CASE
        WHEN bool_or(b.status IN {NOT_FINAL})
            THEN format('batch %s is not over', min(b.id) FILTER (WHERE b.status IN {NOT_FINAL}))
        WHEN bool_or(b.over_at >= :before)
            THEN format('batch %s is not older than that day', min(b.id) FILTER (WHERE b.over_at >= :before))
        WHEN count(b.idempotency_key) > 0
            THEN format('batch %s still answers to its idempotency key',
                        min(b.id) FILTER (WHERE b.idempotency_key IS NOT NULL))
        WHEN bool_or(b.issued_at >= CASE WHEN b.sandbox THEN o.sandbox_counted_until ELSE o.counted_until END)
            THEN 'its days are not closed yet' END
    FROM (SELECT id, organization_id, sandbox, status, idempotency_key, issued_at, {_OVER_AT} AS over_at
          FROM batches WHERE id >= :first AND id < :end) b
    LEFT JOIN organizations o ON o.id = b.organization_id
""")


def note_compared(connection: Connection, closed: Range, *, rows: int, digests: tuple[bytes, bytes]) -> bool:
    """Note that the files of a range hold its rows; False if an erasure has rewritten some since `closed` was read."""
    parameters = {
        "first": closed.first,
        "rewritten": closed.rewritten,
        "transactions": rows,
        "file": closed.name,
        "sha256": digests[0],
        "batches_sha256": digests[1],
    }
    return connection.execute(_COMPARED, parameters).rowcount == 1


_COMPARED = text("""
    UPDATE archived_ranges
    SET transactions = :transactions, file = :file, sha256 = :sha256, batches_sha256 = :batches_sha256,
        compared_at = clock_timestamp()
    WHERE first_batch_id = :first AND rewritten = :rewritten
""")


def note_archived(connection: Connection, first: int) -> None:
    connection.execute(_ARCHIVED, {"first": first})


_ARCHIVED = text("UPDATE archived_ranges SET archived_at = clock_timestamp() WHERE first_batch_id = :first")


def note_files_lost(connection: Connection, first: int) -> None:
    """Take a range whose rows are still here back to the state in which its files have to be written."""
    connection.execute(_LOST, {"first": first})


_LOST = text("""
    UPDATE archived_ranges SET transactions = NULL, file = NULL, sha256 = NULL, batches_sha256 = NULL,
                               compared_at = NULL, archived_at = NULL
    WHERE first_batch_id = :first
""")


def note_emptied(connection: Connection, first: int) -> None:
    connection.execute(_EMPTIED, {"first": first})


_EMPTIED = text("UPDATE archived_ranges SET emptied_at = clock_timestamp() WHERE first_batch_id = :first")
