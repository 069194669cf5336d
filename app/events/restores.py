"""A restore from a backup: the numbers that were given after the backup's moment are left behind, and it is noted."""

from datetime import datetime
from typing import NamedTuple

from sqlalchemy import Connection, text

from app.events.event_types import PLATFORM

# More than the ids and the events of a year.
SKIPPED = 1_000_000_000


class Restored(NamedTuple):
    """When a restore was noted, and in how many logs."""

    restored_at: datetime
    event_logs: int


def leave_behind(connection: Connection) -> Restored:
    """Skip `SKIPPED` numbers in each sequence of ids and in each event log, also in one that has no event yet.

    Nobody can tell a second restore from a repetition, so each call skips anew. The ids stay skipped if the transaction
    rolls back, which harms nothing.
    """
    # Who numbers events waits, and so does a second call: a number is from before the skipped ones or from after.
    connection.execute(text("LOCK TABLE event_logs IN SHARE ROW EXCLUSIVE MODE"))
    parameters = {"skipped": SKIPPED}
    connection.execute(_SKIP_IDS, parameters)
    return Restored._make(connection.execute(_SKIP_SEQUENCES, parameters).one())


_SKIP_IDS = text("""
    SELECT setval(CAST(format('%I.%I', schemaname, sequencename) AS regclass), coalesce(last_value, 0) + :skipped)
    FROM pg_sequences WHERE schemaname = current_schema() AND data_type = CAST('bigint' AS regtype)
""")
_SKIP_SEQUENCES = text(f"""
    WITH logs AS (
        INSERT INTO event_logs AS l (organization_id, sandbox, last_sequence)
        SELECT {PLATFORM}, false, :skipped
        UNION ALL SELECT id, sandbox, :skipped FROM organizations, (VALUES (false), (true)) modes (sandbox)
        ON CONFLICT (organization_id, sandbox) DO UPDATE SET last_sequence = l.last_sequence + excluded.last_sequence
        RETURNING *
    ), noted AS (
        INSERT INTO restores (organization_id, sandbox, skipped_from, skipped_to, restored_at)
        SELECT organization_id, sandbox, last_sequence - :skipped + 1, last_sequence, now() FROM logs
    )
    SELECT now(), count(*) FROM logs
""")


def skipped_after(log: str, sequence: str) -> str:
    """Return, as SQL, how many numbers of a log restores have skipped after a sequence of an event or of none."""
    return f"""(SELECT CAST(coalesce(sum(skipped_to - skipped_from + 1), 0) AS bigint) FROM restores r
                WHERE (r.organization_id, r.sandbox) = ({log}.organization_id, {log}.sandbox)
                  AND r.skipped_to > {sequence})"""
