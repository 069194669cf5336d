"""What PostgreSQL tells any role of what may stop it, or lose what is committed: its log, and its transaction ids."""

from typing import NamedTuple

from sqlalchemy import Connection, text


class Safety(NamedTuple):
    """`slot_bytes`: what the slot keeps of the log that is furthest behind. 2³¹ is the end of all transaction ids."""

    archive_fails: bool
    slot_bytes: int
    transaction_id_age: int


def safety(connection: Connection) -> Safety:
    return Safety._make(connection.execute(_SAFETY).one())


_SAFETY = text("""
    SELECT (SELECT coalesce(last_failed_time > coalesce(last_archived_time, '-infinity'), false)
                   AND current_setting('archive_mode') <> 'off' FROM pg_stat_archiver),
           (SELECT CAST(coalesce(max(pg_current_wal_lsn() - restart_lsn), 0) AS bigint) FROM pg_replication_slots),
           (SELECT max(greatest(age(datfrozenxid), mxid_age(datminmxid))) FROM pg_database)
""")
