"""Claims: when a user registers, the held transactions of the address are credited."""

from collections.abc import Sequence
from functools import partial
from typing import Annotated, NamedTuple

from sqlalchemy import Connection, text

from app.ledger.held_list import (
    ORGANIZATIONS_MAX,
    ROWS_HELD_FOR_USERS,
    exclude_reversals,
    holders_of,
    rows_held_for,
    take_off_list,
)
from app.noun import Noun
from app.noun_fields import Points, Shown, says
from app.postgres import locks
from app.postgres.database import shown_sum
from app.users import NewUser, in_order, insert_new

# Limits of a statement: the users whose held transactions it searches, and the transactions it credits.
CLAIM_STEP = 1_000
CLAIM_ROWS_MAX = 10_000
# How many transactions an event lists; for the others it gives a path.
_LISTED_MAX = 100
# Users are registered in groups of this size. A transaction ends after the first group with much to claim, or after
# this many users.
_GROUP = 100
_REGISTERED_MAX = 1_000


class Claimed(NamedTuple):
    """What was held for the address and is now credited."""

    transactions: Annotated[int, says("How many transactions.", 1, ge=0)]
    points: Annotated[Points, says("Their points together.", 50), Shown(name="amount", is_sum=True)]

    def and_also(self, more: "Claimed") -> "Claimed":
        return Claimed(self.transactions + more.transactions, self.points + more.points)


NOTHING = Claimed(0, 0)
claims = Noun(Claimed, "claim", "claims")


class Registered(NamedTuple):
    """How many users of the list were read, from the first on; the ids of those registered, and what they claimed."""

    looked_at: int
    user_ids: list[int]
    claimed: Claimed


def register(connection: Connection, users: Sequence[NewUser]) -> Registered:
    """Register the users whose addresses are new, and claim what is held for them: all, or fewer if that is much.

    They are looked at in the order of their address; register the rest in further transactions. Each user is registered
    and credited in one transaction, and no transaction grows with the points held for thousands of users.

    The locks of all organizations that hold something come before the first new user: whoever waits for the address of
    a user that another transaction registers then never holds up the reversal that this transaction waits for.
    """
    users = in_order(users)[:_REGISTERED_MAX]
    holders = holders_of(connection, [user.address.key for user in users])
    while len(holders) == ORGANIZATIONS_MAX and len(users) > 1:
        users = users[: len(users) // 2]
        holders = holders_of(connection, [user.address.key for user in users])
    exclude_reversals(connection, holders)
    if len(users) > 1:
        locks.share(connection, locks.Kind.IDENTITIES, [0])
    looked_at, user_ids, claimed = 0, list[int](), NOTHING
    while looked_at < len(users) and claimed.transactions < CLAIM_ROWS_MAX:
        group = insert_new(connection, users[looked_at : looked_at + _GROUP])
        looked_at = min(looked_at + _GROUP, len(users))
        user_ids += group
        claimed = claimed.and_also(claim_all(connection, group, holders, at_registration=True))
    return Registered(looked_at, user_ids, claimed)


def claim_all(
    connection: Connection,
    user_ids: Sequence[int],
    organization_ids: Sequence[int],
    *,
    at_registration: bool = False,
) -> Claimed:
    """Claim everything that these organizations hold for these users in one transaction.

    The caller has excluded their reversals. Of several users, all are registered in this transaction.

    Args:
        at_registration: note it with the users as what their registration has claimed.
    """
    claimed = NOTHING
    while user_ids and organization_ids:
        step = claim(connection, user_ids, organization_ids, at_registration=at_registration)
        claimed = claimed.and_also(step)
        if step.transactions < CLAIM_ROWS_MAX:
            break
    return claimed


def claim(
    connection: Connection,
    user_ids: Sequence[int],
    organization_ids: Sequence[int],
    *,
    at_registration: bool = False,
) -> Claimed:
    """Credit what these organizations hold for these users, keeping the transaction ids; return how many and how much.

    If a part was taken back, the rest is credited. Points past their `held_until` are not credited, whether or not they
    are returned yet. At most `CLAIM_ROWS_MAX` are claimed; the next claim goes on from there. The caller has excluded
    reversals and returns of the organizations. Nothing is debited here: they were debited at the issue.
    """
    # Lock the users' rows first, in order of id. A claim then waits for another claim of the same users, and finds
    # nothing held.
    connection.execute(_LOCK_USERS, {"user_ids": list(user_ids)})
    parameters = {
        "user_ids": list(user_ids),
        "organization_ids": list(organization_ids),
        "at_registration": at_registration,
        "rows_max": CLAIM_ROWS_MAX,
        "listed_max": _LISTED_MAX,
    }
    count, points = connection.execute(_CLAIM, parameters).one()
    return Claimed(count, int(points))


def claim_in_sandbox(connection: Connection, user_id: int, organization_id: int) -> Claimed:
    """Credit held transactions of an organization's sandbox to a user of it, as `claim` does; no balance rises.

    The caller has locked the organization's row.
    """
    limits = {"rows_max": CLAIM_ROWS_MAX, "listed_max": _LISTED_MAX}
    parameters = {"user_ids": [user_id], "at_registration": True, "sandbox_of": organization_id, **limits}
    count, points = connection.execute(_CLAIM_IN_SANDBOX, parameters).one()
    return Claimed(count, int(points))


def claimed_at_registration(connection: Connection, user_id: int) -> Claimed:
    """Return what the registration of a user has claimed."""
    count, points = connection.execute(_CLAIMED_AT_REGISTRATION, {"id": user_id}).one()
    return Claimed(count, int(points))


_CLAIMED_AT_REGISTRATION = text("""
    SELECT coalesce(claimed_count, 0), coalesce(claimed_points, 0) FROM users WHERE id = :id
""")


_LOCK_USERS = text("SELECT FROM users WHERE id = ANY(:user_ids) ORDER BY id FOR NO KEY UPDATE")

# Held transactions are read user by user, and updated by ctid within the partition of their batch, as in
# app/ledger/reverse.sql: while the users and the balances of the organizations are locked nobody else updates them.
# Those of a user are taken by organization: if a transaction claims several times, it takes the balances in the order
# in which others do.
#
# The clock is read once, so points are claimed at the same time at which they are still held: before `held_until`.
_CLAIM_IN = """
    WITH moment AS MATERIALIZED (
        SELECT {now} AS now
    ), held AS MATERIALIZED (
        SELECT u.id AS user_id, u.first_name, u.last_name, its.*
        FROM users u
        CROSS JOIN LATERAL (SELECT h.batch_id, h.place, its.amount
                            FROM ({held_for_u}) h
                            CROSS JOIN LATERAL (SELECT held_until, amount FROM batches
                                                WHERE id = h.batch_id AND organization_id = h.organization_id
                                                LIMIT 1) its
                            WHERE {of_organizations}
                              AND coalesce(h.held_until, its.held_until, 'infinity') > (SELECT now FROM moment)
                            ORDER BY h.organization_id LIMIT :rows_max) its
        WHERE u.id = ANY(:user_ids) AND {user_in_mode} LIMIT :rows_max
    ), claimed AS (
        UPDATE transactions t SET user_id = h.user_id, credited = true, claimed_at = (SELECT now FROM moment)
        FROM held h
        WHERE t.batch_id BETWEEN h.batch_id AND h.batch_id AND t.ctid = h.place
        RETURNING h.user_id, h.first_name, h.last_name, t.organization_id,
                  transaction_id(t.batch_id, t.position) AS id, coalesce(t.points_left, t.amount, h.amount) AS amount,
                  t.points_left, t.batch_id, t.position, t.sandbox, coalesce(t.email_key, t.email) AS email_key
    ), entries AS (
        INSERT INTO user_entries (user_id, organization_id, created_at, transaction_id, amount)
        SELECT user_id, organization_id, (SELECT now FROM moment), id, points_left FROM claimed WHERE NOT {sandbox}
        ORDER BY user_id, id
    ), events AS (
        INSERT INTO unnumbered_events (organization_id, sandbox, created_at, type, data)
        SELECT organization_id, {sandbox}, (SELECT now FROM moment), 'transaction.claimed', json_build_object(
                   'user', json_build_object('id', user_id, 'first_name', min(first_name), 'last_name', min(last_name)),
                   'transactions', to_json((array_agg(id ORDER BY id))[1 : :listed_max]),
                   'count', count(*), 'amount', {shown_sum},
                   'more', CASE WHEN count(*) > :listed_max
                                THEN '/v1/transactions?credited=true&user=' || user_id END)
        FROM claimed GROUP BY organization_id, user_id ORDER BY organization_id, user_id
    ), noted AS (
        UPDATE users u SET claimed_count = coalesce(u.claimed_count, 0) + c.count,
                           claimed_points = coalesce(u.claimed_points, 0) + c.points
        FROM (SELECT user_id, count(*) AS count, sum(amount) AS points FROM claimed GROUP BY user_id) c
        WHERE u.id = c.user_id AND :at_registration
    ), off_the_sums AS (
        {off_the_sums}
    ), no_longer_listed AS (
        {no_longer_listed}
    ), credited AS (
        INSERT INTO user_balances (user_id, organization_id, points)
        SELECT user_id, organization_id, sum(amount) FROM claimed WHERE NOT {sandbox}
        GROUP BY organization_id, user_id ORDER BY organization_id, user_id
        ON CONFLICT (user_id, organization_id) DO UPDATE SET points = user_balances.points + excluded.points
    )
    SELECT count(*), coalesce(sum(amount), 0) FROM claimed
"""
_NOTE_CLAIMS = """
        INSERT INTO unfolded_claims (organization_id, points, count)
        SELECT organization_id, sum(amount), count(*) FROM claimed GROUP BY organization_id
"""
_TAKE_OFF_HELD = """
        UPDATE organizations SET sandbox_held_points = sandbox_held_points - c.points,
                                 sandbox_held_count = sandbox_held_count - c.count
        FROM (SELECT organization_id, sum(amount) AS points, count(*) AS count FROM claimed GROUP BY organization_id) c
        WHERE organizations.id = c.organization_id
"""
_claiming = partial(_CLAIM_IN.format, no_longer_listed=take_off_list("claimed"), shown_sum=shown_sum("amount"))
_CLAIM = text(
    _claiming(
        off_the_sums=_NOTE_CLAIMS,
        now="clock_timestamp()",
        held_for_u=rows_held_for("u.email_key"),
        of_organizations="h.organization_id = ANY(:organization_ids)",
        user_in_mode="u.sandbox_of IS NULL",
        sandbox="false",
    )
)
_CLAIM_IN_SANDBOX = text(
    _claiming(
        off_the_sums=_TAKE_OFF_HELD,
        now="time_of(CAST(:sandbox_of AS bigint), true)",
        held_for_u=rows_held_for("u.email_key", sandbox_of="CAST(:sandbox_of AS bigint)"),
        of_organizations="true",
        user_in_mode="u.sandbox_of = CAST(:sandbox_of AS bigint)",
        sandbox="true",
    )
)


def claim_crossed(connection: Connection, *, registered_within_s: float | None) -> int:
    """Claim some of what is held for users who registered or changed their address during an issue; return how many.

    Neither transaction saw the other's row, so points are held for a user who exists. If another search of the same
    kind runs, this search does nothing.
    """
    if not locks.try_to_take(connection, locks.Kind.CROSSED_SEARCH, int(registered_within_s or 0)):
        return 0
    user_ids = users_with_held(connection, registered_within_s=registered_within_s, limit=CLAIM_STEP)
    if not user_ids:
        return 0
    holders = holders_of(connection, list(connection.execute(_EMAIL_KEYS, {"user_ids": user_ids}).scalars()))
    exclude_reversals(connection, holders)
    return claim(connection, user_ids, holders).transactions if holders else 0


_EMAIL_KEYS = text("SELECT email_key FROM users WHERE id = ANY(:user_ids) AND email_key IS NOT NULL")


def users_with_held(connection: Connection, *, registered_within_s: float | None, limit: int = CLAIM_STEP) -> list[int]:
    """Return up to `limit` users whose points are still held, because they registered at the same time as an issue.

    With `registered_within_s`, only users who registered or changed their address in that time are searched, so the
    cost does not grow with the points held for people without an account. With None, all users are searched.
    """
    statement = _USERS_WITH_HELD if registered_within_s is None else _NEW_USERS_WITH_HELD
    parameters = {"limit": limit} | ({} if registered_within_s is None else {"within_s": registered_within_s})
    return list(connection.execute(statement, parameters).scalars())


_NOT_OVER = """
    CROSS JOIN LATERAL (SELECT FROM batches
                        WHERE id = h.batch_id AND organization_id = h.organization_id
                          AND coalesce(h.held_until, held_until, 'infinity') > clock_timestamp() LIMIT 1) b
"""
_USERS_WITH_HELD = text(f"SELECT DISTINCT of_user FROM ({ROWS_HELD_FOR_USERS}) h {_NOT_OVER} LIMIT :limit")

# This runs every few seconds, so both parts use an index. The clock is read once, in a subquery: PostgreSQL does not
# use an index for a value that may change from row to row.
_NEW_USERS_WITH_HELD = text(f"""
    SELECT u.id FROM users u
    CROSS JOIN LATERAL (SELECT FROM ({rows_held_for("u.email_key")}) h {_NOT_OVER} LIMIT 1) held
    WHERE coalesce(u.address_changed_at, u.created_at) > (SELECT clock_timestamp() - make_interval(secs => :within_s))
      AND u.sandbox_of IS NULL
    LIMIT :limit
""")
