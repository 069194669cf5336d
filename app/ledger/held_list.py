"""What is held for an address, without a look into each partition (decision 29).

The newest partition, which sends fill, has an index of what is held. What is held in the full ones is listed by the
hash of its address, in a table, by the upkeep: a row for each when it is issued would make a send of 10,000 a quarter
dearer.

The list may name transactions that are held no longer, so check each one. It never misses a held transaction: it
cannot become held later; a batch that is issued late into a full partition lists its own; and a part is listed only
after every issue has ended that began before issues had to do so.
"""

from collections.abc import Sequence

from sqlalchemy import Connection, text

from app.postgres import locks, partitions
from app.postgres.database import steps
from app.values.ids import POSITIONS

# Batch ids that a transaction lists: at most some 262,144 transactions.
_STEP = 16_384
_STEPS_MAX = 200
# How long it waits for issues to end. If an issue takes longer, the next run lists.
_WAITS_S = 0.5

# Below these batch ids what is held is listed, and by its issue. An index is read, since a table is only read at need.
_LISTED_TO = "(SELECT coalesce(max(listed_to), 0) FROM held_listing WHERE is_the_one)"
LISTED_BY_ISSUE_TO = "(SELECT coalesce(max(listing_to), 0) FROM held_listing WHERE is_the_one)"

_IS_HELD = "t.debited AND NOT t.credited AND t.points_left IS DISTINCT FROM 0"
_IN_LIVE = "NOT t.sandbox"
_LOOKED_UP = f"""
    CROSS JOIN LATERAL (
        SELECT ctid AS place, * FROM transactions
        WHERE batch_id = l.transaction_id / {POSITIONS} AND position = l.transaction_id % {POSITIONS} LIMIT 1
    ) t
"""


def rows_held_for(email_key: str, *, sandbox_of: str | None = None) -> str:
    """Return the statement of what is held for an address, live or in an organization's sandbox, whatever its end.

    Its rows are transactions, with their ctid as `place`.
    """
    scope = _IN_LIVE if sandbox_of is None else f"t.sandbox AND t.organization_id = {sandbox_of}"
    hash_asked_for = f"held_hash({email_key}, {sandbox_of is not None}, {sandbox_of or 0})"
    return f"""
        SELECT t.* FROM held_transactions l {_LOOKED_UP}
        WHERE l.address_hash = {hash_asked_for} AND t.batch_id < {_LISTED_TO}
          AND coalesce(t.email_key, t.email) = {email_key} AND {_IS_HELD} AND {scope}
        UNION ALL
        SELECT t.ctid, t.* FROM transactions t
        WHERE t.batch_id >= {_LISTED_TO} AND coalesce(t.email_key, t.email) = {email_key} AND {_IS_HELD} AND {scope}
    """


# The same for all users: each of their rows with the user's id.
ROWS_HELD_FOR_USERS = f"""
    SELECT u.id AS of_user, t.* FROM held_transactions l
    JOIN users u ON held_hash(u.email_key, false, 0) = l.address_hash {_LOOKED_UP}
    WHERE u.sandbox_of IS NULL AND t.batch_id < {_LISTED_TO}
      AND coalesce(t.email_key, t.email) = u.email_key AND {_IS_HELD} AND {_IN_LIVE}
    UNION ALL
    SELECT u.id, t.ctid, t.* FROM transactions t JOIN users u ON u.email_key = coalesce(t.email_key, t.email)
    WHERE u.sandbox_of IS NULL AND t.batch_id >= {_LISTED_TO} AND {_IS_HELD} AND {_IN_LIVE}
"""


def take_off_list(rows: str) -> str:
    """Return the statement that takes transactions off the list.

    Args:
        rows: what to select from, and which: rows with `batch_id`, `position`, `email_key`, `sandbox` and
            `organization_id`.
    """
    return f"""
        DELETE FROM held_transactions WHERE ctid = ANY(ARRAY(
            SELECT l.ctid FROM (SELECT * FROM {rows}) gone
            CROSS JOIN LATERAL (SELECT ctid FROM held_transactions
                                WHERE address_hash = held_hash(gone.email_key, gone.sandbox, gone.organization_id)
                                  AND transaction_id = transaction_id(gone.batch_id, CAST(gone.position AS int))
                                LIMIT 1) l
            WHERE gone.batch_id < {LISTED_BY_ISSUE_TO}))
    """


def list_issued(connection: Connection, organization_id: int, batch_ids: Sequence[int]) -> None:
    """List what is held of batches that were issued late, in a partition that is full, as a scheduled batch may be."""
    connection.execute(_LIST_ISSUED, {"organization_id": organization_id, "batch_ids": list(batch_ids)})


def list_full() -> None:
    """List what is held in the partitions that are full; what is left after these steps waits for the next run."""
    steps(list_step, steps_max=_STEPS_MAX)


def list_step(connection: Connection) -> int:
    """List what is held of the next batch ids, and return 1; 0 when there is nothing to list now.

    The first transaction tells issues to list what is below the newest partition; the others list, once all issues have
    ended that were not told.
    """
    connection.execute(_MAKE)
    state = connection.execute(_LOCK).one_or_none()
    if state is None:  # Another process lists.
        return 0
    if state.listed_to == state.listing_to:
        full_to = partitions.look(connection).newest_first
        if full_to > state.listing_to:
            connection.execute(_TELL_ISSUES, {"full_to": full_to})
        return 0
    if not locks.outlast_writers(connection, ["transactions"], within_s=_WAITS_S):
        return 0
    listed = {"first": state.listed_to, "end": min(state.listed_to + _STEP, state.listing_to)}
    connection.execute(_LIST, listed)
    connection.execute(_LISTED, listed)
    return 1


_MAKE = text("INSERT INTO held_listing (listed_to, listing_to) VALUES (0, 0) ON CONFLICT DO NOTHING")
_LOCK = text("SELECT listed_to, listing_to FROM held_listing WHERE is_the_one FOR UPDATE SKIP LOCKED")
_TELL_ISSUES = text("UPDATE held_listing SET listing_to = :full_to WHERE is_the_one")
_LISTED = text("UPDATE held_listing SET listed_to = :end WHERE is_the_one")
_LIST_THOSE = f"""
    INSERT INTO held_transactions (organization_id, transaction_id, address_hash)
    SELECT t.organization_id, transaction_id(t.batch_id, t.position),
           held_hash(coalesce(t.email_key, t.email), t.sandbox, t.organization_id) AS address_hash
    FROM transactions t WHERE {{those}} AND {_IS_HELD}
    ORDER BY address_hash ON CONFLICT DO NOTHING
"""
_LIST = text(_LIST_THOSE.format(those="t.batch_id >= :first AND t.batch_id < :end"))
_LIST_ISSUED = text(_LIST_THOSE.format(those="t.batch_id = ANY(:batch_ids) AND t.organization_id = :organization_id"))

# Organizations whose locks a claim takes. PostgreSQL has room for some thousands of locks of everybody.
ORGANIZATIONS_MAX = 200


def exclude_claims(connection: Connection, organization_id: int) -> None:
    """Exclude claims and folds of an organization until the transaction ends, because its points are taken back.

    A claim takes this lock before any row, so it never waits for a reversal while it holds what the reversal needs.
    There is one lock for all users of the organization: a reversal cannot know which users are registering.
    """
    locks.wait_for(connection, locks.Kind.BALANCES, organization_id)


def exclude_reversals(connection: Connection, organization_ids: Sequence[int]) -> None:
    """Exclude live reversals of these organizations until the transaction ends; wait for running ones.

    Other claims and folds may run. Take all that a transaction needs at once, and before it locks any user.
    """
    if organization_ids:
        locks.share(connection, locks.Kind.BALANCES, organization_ids)


def holders_of(connection: Connection, email_keys: Sequence[str]) -> list[int]:
    """Return the organizations that hold live points for any of these addresses: at most `ORGANIZATIONS_MAX`.

    Points of an organization that comes later, or beyond these, are left to the search for crossed registrations.
    """
    parameters = {"email_keys": list(email_keys), "at_most": ORGANIZATIONS_MAX}
    return list(connection.execute(_HOLDERS, parameters).scalars())


# LIMIT and OFFSET make PostgreSQL look each address up in an index.
_HOLDERS = text(f"""
    SELECT DISTINCT h.organization_id FROM unnest(CAST(:email_keys AS text[])) AS keys (email_key)
    CROSS JOIN LATERAL (SELECT organization_id FROM ({rows_held_for("keys.email_key")}) rows OFFSET 0) h
    ORDER BY h.organization_id LIMIT :at_most
""")
