"""The addresses of an erased user in the archive: `points archive` writes the files anew that have one."""

from typing import NamedTuple

from sqlalchemy import Connection, text


class Waiting(NamedTuple):
    """How many erased users may be in how many files yet, and for how many seconds the first of them."""

    users: int
    ranges: int
    oldest_s: float


def ask(connection: Connection, user_id: int) -> None:
    """Ask for it, of every range that is closed or archived now; once is enough.

    The addresses and what is known of them are in `former_addresses`. Only their hashes are kept, until it is done.
    """
    connection.execute(_ASK, {"id": user_id})


def note_erased(connection: Connection) -> None:
    """Note that rows were changed of which files are being written; these are written again.

    Of a range that is just noted as compared, `ask` has asked for its files.
    """
    connection.execute(_NOTE_ERASED)


_NOTE_ERASED = text("""
    UPDATE archived_ranges SET rewritten = rewritten + 1
    WHERE first_batch_id IN (SELECT first_batch_id FROM archived_ranges WHERE compared_at IS NULL
                             FOR NO KEY UPDATE SKIP LOCKED)
""")
# The users of sandboxes that were erased with this one are found by their ids: what nobody got at an address is found
# by its hash. A range that is opened again takes these rows with it, and must stay until they are committed.
_ASK = text("""
    WITH erased AS MATERIALIZED (
        SELECT f.user_id,
               coalesce(array_agg(sha256(convert_to(f.email_key, 'UTF8')) ORDER BY f.email_key)
                            FILTER (WHERE f.user_id = :id), '{}') AS address_hashes,
               coalesce(array_agg(f.last_batch_id ORDER BY f.email_key) FILTER (WHERE f.user_id = :id), '{}')
                   AS last_batch_ids
        FROM former_addresses f
        WHERE f.user_id = :id
           OR f.email_key IN (SELECT email_key FROM former_addresses WHERE user_id = :id)
              AND EXISTS (SELECT FROM users u WHERE u.id = f.user_id AND u.sandbox_of IS NOT NULL)
        GROUP BY f.user_id
    ), closed AS MATERIALIZED (
        SELECT first_batch_id FROM archived_ranges ORDER BY first_batch_id FOR KEY SHARE
    )
    INSERT INTO archived_erasures (first_batch_id, user_id, address_hashes, last_batch_ids)
    SELECT first_batch_id, user_id, address_hashes, last_batch_ids FROM closed CROSS JOIN erased
    ON CONFLICT (first_batch_id, user_id) DO NOTHING
""")


def waiting(connection: Connection) -> Waiting | None:
    """Return what waits for `points archive`; None if nothing does."""
    row = connection.execute(_WAITING).one()
    return Waiting(row.users, row.ranges, float(row.oldest_s)) if row.users else None


_WAITING = text("""
    SELECT count(DISTINCT user_id) AS users, count(DISTINCT first_batch_id) AS ranges,
           coalesce(extract(epoch FROM clock_timestamp() - min(asked_at)), 0) AS oldest_s
    FROM archived_erasures
""")
