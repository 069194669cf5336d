"""Who holds vacuum back: the oldest snapshot that PostgreSQL must keep dead rows for, and what ends it.

Dead rows that vacuum may not remove pile up where rows live for seconds: in the queue, the events, the balances.
"""

from typing import NamedTuple

from sqlalchemy import Connection, text

# From this age on, a snapshot is named as too old. The reads of this service end within seconds and a usual dump within
# minutes; after five minutes, what a busy organization leaves behind can be measured in its sends.
TOO_OLD_S = 300.0

SESSION, STANDBY, SLOT, PREPARED = "session", "standby", "slot", "prepared transaction"


class Snapshot(NamedTuple):
    """The oldest snapshot. `name` is that of a slot or a prepared transaction; a session has the rest.

    `seconds` is how long ago the first call was noted that it keeps rows for; `user` and `application` are what
    PostgreSQL knows of the session.
    """

    kind: str
    seconds: float
    name: str | None
    pid: int | None
    user: str | None
    application: str | None

    @property
    def is_too_old(self) -> bool:
        return self.seconds > TOO_OLD_S

    def who(self) -> str:
        """Return who holds it, in words."""
        if self.name is not None:
            return f"the {self.kind} {self.name}"
        whose = ", ".join([self.application or "without a name", *([f"user {self.user}"] if self.user else [])])
        return f"the {self.kind} with pid {self.pid} ({whose})"

    def remedy(self) -> str:
        """Return what ends it, in words."""
        if self.kind == SESSION:
            return f"let it end, or end it: SELECT pg_terminate_backend({self.pid})"
        if self.kind == STANDBY:
            return "end the long read there, or set hot_standby_feedback = off on it"
        literal = "'" + (self.name or "").replace("'", "''") + "'"
        if self.kind == SLOT:
            return f"let its standby connect again, or drop it: SELECT pg_drop_replication_slot({literal})"
        return f"COMMIT PREPARED {literal} or ROLLBACK PREPARED {literal}"


def oldest_snapshot(connection: Connection) -> Snapshot | None:
    """Return the oldest snapshot; None if no call was noted since it was taken, and so next to nothing is kept for it.

    No privilege is needed. PostgreSQL hides the beginning of other roles' sessions, and keeps none of a slot; but it
    shows the transaction number, and the calls in the log of requests have numbers too, and times.
    """
    row = connection.execute(_OLDEST).one_or_none()
    return None if row is None else Snapshot._make(row)


# A running transaction with a number of its own holds vacuum back as its snapshot does; a vacuum itself does not. A
# session of another database holds back nothing here, and a walsender belongs to none. A slot's `catalog_xmin` holds
# back system tables only.
#
# The search halves the ids of the log of requests, whose rows are written once, in the order of their transactions.
_OLDEST = text(f"""
    WITH RECURSIVE holders (kind, age, name, pid, holds_as, application) AS (
        SELECT CASE WHEN w.pid IS NULL THEN '{SESSION}' ELSE '{STANDBY}' END,
               greatest(age(a.backend_xmin), age(a.backend_xid)), CAST(NULL AS text), a.pid, a.usename,
               a.application_name
        FROM pg_stat_activity a LEFT JOIN pg_stat_get_wal_senders() w ON w.pid = a.pid
        WHERE (a.datid = (SELECT oid FROM pg_database WHERE datname = current_database()) OR w.pid IS NOT NULL)
          AND a.pid <> pg_backend_pid() AND NOT EXISTS (SELECT FROM pg_stat_progress_vacuum v WHERE v.pid = a.pid)
        UNION ALL SELECT '{SLOT}', age(xmin), slot_name, NULL, NULL, NULL FROM pg_replication_slots
        UNION ALL SELECT '{PREPARED}', age(transaction), gid, NULL, NULL, NULL FROM pg_prepared_xacts
                  WHERE database = current_database()
    ), oldest AS MATERIALIZED (
        SELECT * FROM holders WHERE age IS NOT NULL ORDER BY age DESC LIMIT 1
    ), search (before, after) AS (
        SELECT min(id) - 1, max(id) FROM api_requests
        UNION ALL
        SELECT CASE WHEN r.is_after THEN s.before ELSE s.middle END,
               CASE WHEN r.is_after THEN s.middle ELSE s.after END
        FROM (SELECT before, after, (before + after) / 2 AS middle FROM search WHERE after - before > 1) s
        CROSS JOIN LATERAL (SELECT age(xmin) <= (SELECT age FROM oldest) AS is_after FROM api_requests
                            WHERE id >= s.middle ORDER BY id LIMIT 1) r
    ), first_after AS MATERIALIZED (
        SELECT r.created_at FROM search s
        CROSS JOIN LATERAL (SELECT created_at, age(xmin) AS age FROM api_requests WHERE id = s.after LIMIT 1) r
        WHERE s.after - s.before = 1 AND r.age <= (SELECT age FROM oldest)
    )
    SELECT o.kind, CAST(greatest(0, extract(epoch FROM clock_timestamp() - f.created_at)) AS float), o.name, o.pid,
           CAST(o.holds_as AS text), o.application
    FROM oldest o CROSS JOIN first_after f
""")
