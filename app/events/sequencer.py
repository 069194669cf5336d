"""The sequencer: gives committed events their sequence, 1, 2, 3 … for each organization and mode.

It runs after the commit. A counter row, updated in the transaction that moves the points, would make drains,
claims and refills wait for each other. So what members are told by mail (`app/mail`) is put down here too.
"""

from dataclasses import dataclass

import orjson
from sqlalchemy import Connection, text

from app.events.event_types import BATCH_ISSUED, BATCH_REFUSED, MAILED
from app.postgres import locks
from app.postgres.database import digest, fetch_all, row_to
from app.settings import settings

# What is bound of an event that holds its data.
DIGESTED = ("organization_id", "sandbox", "id", "type", "data")

# The most events that a call numbers.
NUMBERED_MAX = 5_000


def number_events(connection: Connection, organization_id: int) -> int:
    """Number the organization's committed events, in both modes, in the order of their ids; return how many.

    Numbers at most `NUMBERED_MAX` events; if it returns that many, call again. It numbers none while another process
    does: whoever asks again later, as the upkeep does twice a second, numbers what was not seen then.

    An event caused by another is written after the first has committed, so its id is higher, and a reader never sees
    the effect without the cause.
    """
    # A statement of its own, so that the next statement sees what the previous sequencer has committed.
    if not locks.try_to_take(connection, locks.Kind.SEQUENCE, organization_id):
        return 0
    parameters = {"organization_id": organization_id, "at_most": NUMBERED_MAX}
    rows = fetch_all(connection, _NUMBER, parameters | {"mailed": _MAILED if settings().has_mail else "{}"})
    return int(rows[0][0])


_MAILED = orjson.dumps(MAILED).decode()


# PostgreSQL keeps the plan, and may make it while the tables are small: each batch and reversal is looked up by itself.
# Batches and reversals have digests of their own; an event that holds its data gets one here. Members are not told of a
# batch that was issued or refused at once, whose sender has seen that, nor of the issue that followed an approval.
_NUMBER = f"""
    WITH taken AS (
        DELETE FROM unnumbered_events
        WHERE organization_id = %(organization_id)s
          AND id = ANY(ARRAY(SELECT id FROM unnumbered_events WHERE organization_id = %(organization_id)s
                             ORDER BY organization_id, id LIMIT %(at_most)s))
        RETURNING *
    ), logs AS (
        INSERT INTO event_logs AS l (organization_id, sandbox, last_sequence)
        SELECT %(organization_id)s, sandbox, count(*) FROM taken GROUP BY sandbox
        ON CONFLICT (organization_id, sandbox) DO UPDATE SET last_sequence = l.last_sequence + excluded.last_sequence
        RETURNING sandbox, last_sequence
    ), known AS (
        SELECT t.*, coalesce(b.idempotency_key, r.idempotency_key) AS idempotency_key,
               CASE t.type WHEN '{BATCH_ISSUED}' THEN b.send_at IS NOT NULL
                           WHEN '{BATCH_REFUSED}' THEN num_nonnulls(b.send_at, b.approved_at) > 0
                           ELSE true END AS is_told
        FROM taken t
        LEFT JOIN LATERAL (SELECT idempotency_key, send_at, approved_at FROM batches
                           WHERE batches.id = t.batch_id LIMIT 1) b ON true
        LEFT JOIN LATERAL (SELECT idempotency_key FROM reversals WHERE reversals.id = t.reversal_id LIMIT 1) r ON true
    ), numbered AS (
        INSERT INTO events (organization_id, sandbox, sequence, id, created_at, type, batch_id, reversal_id, send_at,
                            credited, idempotency_key, data, digest)
        SELECT %(organization_id)s, t.sandbox,
               l.last_sequence + 1 - row_number() OVER (PARTITION BY t.sandbox ORDER BY t.id DESC),
               t.id, t.created_at, t.type, t.batch_id, t.reversal_id, t.send_at, t.credited,
               t.idempotency_key, t.data, CASE WHEN t.data IS NOT NULL THEN {digest(DIGESTED, "t")} END
        FROM known t JOIN logs l ON l.sandbox = t.sandbox
    ), mailed AS (
        INSERT INTO mails (organization_id, sandbox, kind, batch_id)
        SELECT organization_id, sandbox, %(mailed)s::jsonb ->> type, batch_id FROM known
        WHERE %(mailed)s::jsonb ? type AND is_told
        ORDER BY id
    )
    SELECT count(*) FROM taken
""".encode()


def organizations_to_number(connection: Connection) -> list[int]:
    """Return the organizations with events that have no sequence yet."""
    return list(connection.execute(_TO_NUMBER).scalars())


_TO_NUMBER = text("SELECT DISTINCT organization_id FROM unnumbered_events ORDER BY organization_id")


@dataclass(frozen=True, kw_only=True, slots=True)
class Unnumbered:
    """How many committed events have no sequence yet, and for how many seconds the oldest of them has waited."""

    events: int
    oldest_s: float


def count_unnumbered(connection: Connection) -> Unnumbered:
    """Count the events without a sequence, for monitoring."""
    return row_to(Unnumbered, connection.execute(_COUNT).one())


_COUNT = text("""
    SELECT count(*) AS events,
           CAST(greatest(0, coalesce(extract(epoch FROM clock_timestamp() - min(created_at)), 0)) AS float) AS oldest_s
    FROM unnumbered_events
""")


def drop_old_events(connection: Connection, *, older_than_days: int, at_most: int) -> int:
    """Drop up to `at_most` of the oldest events of a log, all past their time; return how many.

    The log goes on from its last sequence, and keeps the last dropped sequence.
    """
    parameters = {"older_than_days": older_than_days, "at_most": at_most}
    return int(connection.execute(_DROP, parameters).scalar_one())


# Only from the beginning of a log: if the clock was set back, an older event behind a younger one waits for it. The
# clock is read once, in a subquery. Skip logs that another worker is pruning (SKIP LOCKED).
_DROP = text("""
    WITH time AS (
        SELECT clock_timestamp() - make_interval(days => :older_than_days) AS kept_from
    ), log AS (
        SELECT l.organization_id, l.sandbox, l.dropped_to FROM event_logs l
        WHERE (SELECT created_at FROM events e
               WHERE (e.organization_id, e.sandbox) = (l.organization_id, l.sandbox) AND e.sequence > l.dropped_to
               ORDER BY e.organization_id, e.sandbox, e.sequence LIMIT 1) < (SELECT kept_from FROM time)
        LIMIT 1 FOR NO KEY UPDATE SKIP LOCKED
    ), oldest AS (
        SELECT e.organization_id, e.sandbox, e.sequence, e.created_at,
               bool_and(e.created_at < (SELECT kept_from FROM time)) OVER (ORDER BY e.sequence) AS is_old
        FROM log l
        CROSS JOIN LATERAL (SELECT * FROM events
                            WHERE (organization_id, sandbox) = (l.organization_id, l.sandbox)
                              AND sequence > l.dropped_to
                            ORDER BY organization_id, sandbox, sequence LIMIT :at_most) e
    ), dropped AS (
        DELETE FROM events e USING oldest o
        WHERE o.is_old AND (e.organization_id, e.sandbox, e.sequence) = (o.organization_id, o.sandbox, o.sequence)
        RETURNING e.organization_id, e.sandbox, e.sequence, e.created_at
    ), noted AS (
        UPDATE event_logs l
        SET dropped_to = d.sequence, dropped_until = greatest(l.dropped_until, d.created_at)
        FROM (SELECT organization_id, sandbox, max(sequence) AS sequence, max(created_at) AS created_at
              FROM dropped GROUP BY 1, 2) d
        WHERE (l.organization_id, l.sandbox) = (d.organization_id, d.sandbox)
    )
    SELECT count(*) FROM dropped
""")
