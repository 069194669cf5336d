"""What is queued: the batches that a drain would take now, those put aside, and how long they have waited."""

from dataclasses import dataclass
from typing import NamedTuple

from sqlalchemy import Connection, text

from app.postgres.database import fetch_all, row_to
from app.settings import INT64_MAX

# The longest time for which a failed batch is put aside.
_POSTPONED_MAX_S = 10

# Whether a drain would take a batch now. If `retry_at` is further ahead than any delay, PostgreSQL's clock was set back
# since, and the batch is due.
IS_DUE = f"""status = 'queued' AND (retry_at IS NULL OR retry_at <= clock_timestamp()
    OR retry_at > clock_timestamp() + interval '{6 * _POSTPONED_MAX_S} s')"""


# The place in an organization's queue, which is in order of acceptance. Ids come from the same sequence, so batches and
# reversals have their places in the same order; what was approved has the place of the moment of its approval.
PLACE = "coalesce(queue_place, id)"

# Start of the wait: for a batch that was scheduled or approved, the later of both; otherwise `created_at`.
_QUEUED_AT = "coalesce(greatest(send_at, approved_at), created_at)"


def has_due(connection: Connection, organization_id: int) -> bool:
    """Tell whether an organization has a batch or a reversal that a drain would take now."""
    return bool(fetch_all(connection, _HAS_DUE, {"organization_id": organization_id}))


# Only the index of queued rows has this order. Without it, a plan made while the table is small, or while most of it is
# queued, would go through all batches.
_HAS_DUE_IN = """
    (SELECT FROM {table}
     WHERE (organization_id, {place}) >= (%(organization_id)s, 1)
       AND (organization_id, {place}) <= (%(organization_id)s, {int64_max}) AND {is_due}
     ORDER BY organization_id, {place} LIMIT 1)
"""
_HAS_DUE = " UNION ALL ".join(
    _HAS_DUE_IN.format(table=table, place=place, int64_max=INT64_MAX, is_due=IS_DUE)
    for table, place in (("batches", PLACE), ("reversals", "id"))
).encode()


class DueBatch(NamedTuple):
    """A batch that a drain would take now, and its place in the queue."""

    id: int
    place: int


def due_batches(connection: Connection, organization_id: int, *, at_most: int) -> list[DueBatch]:
    """Return an organization's batches that a drain would take now, in order."""
    parameters = {"organization_id": organization_id, "at_most": at_most}
    return list(map(DueBatch._make, connection.execute(_DUE_BATCHES, parameters)))


_DUE_BATCHES = text(f"""
    SELECT id, {PLACE} FROM batches
    WHERE (organization_id, {PLACE}) >= (:organization_id, 1)
      AND (organization_id, {PLACE}) <= (:organization_id, {INT64_MAX}) AND {IS_DUE}
    ORDER BY organization_id, {PLACE} LIMIT :at_most
""")


class DueReversal(NamedTuple):
    """A reversal that a drain would take now; its batch, if any, may still be queued."""

    id: int
    sandbox: bool
    batch_id: int | None
    batch_is_queued: bool


def oldest_due_reversal(connection: Connection, organization_id: int, *, only: int | None = None) -> DueReversal | None:
    """Return the oldest due reversal of an organization, which a drain would take now; or `only` this reversal."""
    parameters = {"organization_id": organization_id, "first": only or 1, "last": only or INT64_MAX}
    rows = fetch_all(connection, _OLDEST_DUE_REVERSAL, parameters)
    return DueReversal._make(rows[0]) if rows else None


_OLDEST_DUE_REVERSAL = f"""
    SELECT id, sandbox, batch_id,
           EXISTS (SELECT FROM batches
                   WHERE batches.id = reversals.batch_id AND batches.organization_id = reversals.organization_id
                     AND batches.status = 'queued')
    FROM reversals
    WHERE (organization_id, id) >= (%(organization_id)s, %(first)s::bigint)
      AND (organization_id, id) <= (%(organization_id)s, %(last)s::bigint) AND {IS_DUE}
    ORDER BY organization_id, id LIMIT 1
""".encode()


def due_reversals(connection: Connection, organization_id: int, *, at_most: int) -> list[int]:
    """Return the ids of an organization's reversals that a drain would take now, oldest first."""
    parameters = {"organization_id": organization_id, "at_most": at_most}
    return list(connection.execute(_DUE_REVERSALS, parameters).scalars())


_DUE_REVERSALS = text(f"""
    SELECT id FROM reversals
    WHERE (organization_id, id) >= (:organization_id, 1) AND (organization_id, id) <= (:organization_id, {INT64_MAX})
      AND {IS_DUE}
    ORDER BY organization_id, id LIMIT :at_most
""")


@dataclass(frozen=True, kw_only=True, slots=True)
class Queued:
    """How many batches and reversals are queued, and for how many seconds the oldest of them has been."""

    batches: int
    reversals: int
    oldest_s: float | None


def count_queued(connection: Connection) -> Queued:
    """Count what is queued, for monitoring."""
    return row_to(Queued, connection.execute(_COUNT).one())


_COUNT = text(f"""
    SELECT count(*) FILTER (WHERE is_batch) AS batches, count(*) FILTER (WHERE NOT is_batch) AS reversals,
           CASE WHEN count(*) > 0
                THEN CAST(greatest(0, extract(epoch FROM clock_timestamp() - min(queued_at))) AS float) END
               AS oldest_s
    FROM (SELECT true AS is_batch, {_QUEUED_AT} AS queued_at FROM batches WHERE status = 'queued'
          UNION ALL SELECT false, created_at FROM reversals WHERE status = 'queued') queued
""")


def organizations_waiting(connection: Connection, *, longer_than_s: float) -> list[int]:
    """Return the organizations with a batch or a reversal that is due and has been queued for longer than it should.

    A row that seems to come from the future was queued before PostgreSQL's clock was set back; it counts as too long.
    """
    return list(connection.execute(_ORGANIZATIONS_WAITING, {"longer_than_s": longer_than_s}).scalars())


# The organizations' ids, each as often as it has such a batch or reversal, by `:longer_than_s`.
WAITING = f"""
    SELECT organization_id FROM batches
    WHERE {IS_DUE} AND ({_QUEUED_AT} < clock_timestamp() - make_interval(secs => :longer_than_s)
                        OR {_QUEUED_AT} > clock_timestamp())
    UNION ALL
    SELECT organization_id FROM reversals
    WHERE {IS_DUE} AND (created_at < clock_timestamp() - make_interval(secs => :longer_than_s)
                        OR created_at > clock_timestamp())
"""
_ORGANIZATIONS_WAITING = text(f"SELECT DISTINCT organization_id FROM ({WAITING}) waiting ORDER BY organization_id")


def postpone(connection: Connection, queued_id: int, *, organization_id: int, table: str = "batches") -> None:
    """Put aside a batch or a reversal: for 1 s, 2 s, 4 s … up to 10 s.

    It failed when it was tried alone, or the batch of the reversal must come first.
    """
    connection.execute(_POSTPONE[table], {"id": queued_id, "organization_id": organization_id})


_POSTPONE = {
    table: text(f"""
        UPDATE {table} SET failures = failures + 1,
            retry_at = clock_timestamp() + make_interval(secs => least(2 ^ least(failures, 10), {_POSTPONED_MAX_S}))
        WHERE id = :id AND organization_id = :organization_id AND status = 'queued'
    """)
    for table in ("batches", "reversals")
}
