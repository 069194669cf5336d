"""Filling the books for section `scale`: a million transactions at a time, with all that is written beside them.

Batches of 1,000 recipients go to 2 million users in no order, and some to addresses that nobody registered. A batch
takes as many ids as if batches had 16 recipients, so that the partitions are filled as by smaller ones.
"""

from collections.abc import Sequence
from dataclasses import dataclass

import psycopg

from app.batches.batch import DIGESTED
from app.events.log import OF_REGISTERED_USERS
from app.postgres.database import digest

RECIPIENTS = 1_000
# The first recipients of each batch of a step are the same: so each of these addresses holds a point of each batch.
HOLDERS = 24
# One batch in so many has a reference on each item.
REFERENCES_EVERY = 20
_IDS_A_BATCH = RECIPIENTS // 16
# Prime to the number of addresses: the recipients walk through all addresses, and no batch has one twice.
_STRIDE = 1_266_971
_USERS_A_STEP = 100_000

Connection = psycopg.Connection[tuple[object, ...]]


@dataclass(frozen=True, kw_only=True)
class Population:
    """Users with ids that follow each other from `first_user_id` on, and strangers, for whom points are held."""

    users: int
    strangers: int
    first_user_id: int


def email_of_user(number: int) -> str:
    return f"user.{number}@example.com"


def email_of_holder(step: int, place: int) -> str:
    return f"held.{step}.{place}@example.com"


def reference_of(row: int) -> str:
    return f"order-{row}"


def register(connection: Connection, *, users: int, strangers: int) -> Population:
    """Register users, as of yesterday: the search for crossed registrations need not look at them."""
    before = _number(connection, "SELECT coalesce(max(id), 0) FROM users")
    for first in range(0, users, _USERS_A_STEP):
        connection.execute(_USERS, {"first": first, "last": min(first + _USERS_A_STEP, users) - 1})
    first_user_id = _number(connection, "SELECT min(id) FROM users WHERE id > %s", before)
    assert _number(connection, "SELECT max(id) FROM users") == first_user_id + users - 1, "nobody else registers"
    return Population(users=users, strangers=strangers, first_user_id=first_user_id)


_USERS = f"""
    WITH new AS (
        INSERT INTO users (email, email_key, first_name, last_name, created_at)
        SELECT email, email, 'First', 'Last', clock_timestamp() - interval '1 day'
        FROM generate_series(CAST(%(first)s AS int), CAST(%(last)s AS int)) AS i
        CROSS JOIN LATERAL (SELECT format('user.%%s@example.com', i) AS email) named
        ORDER BY i RETURNING id
    ) {OF_REGISTERED_USERS}
"""  # noqa: S608  # It is put together from words of the code.


def fill(
    connection: Connection, organizations: Sequence[int], population: Population, *, step: int, batches: int
) -> None:
    """Issue batches of one point a recipient, in turn by these organizations, in one transaction."""
    parameters = {
        "organizations": list(organizations),
        "of_them": len(organizations),
        "batches": batches,
        "recipients": RECIPIENTS,
        "ids": _IDS_A_BATCH,
        "first_row": step * batches * RECIPIENTS,
        "stride": _STRIDE,
        "users": population.users,
        "addresses": population.users + population.strangers,
        "first_user_id": population.first_user_id,
        "holders": HOLDERS,
        "step": step,
        "references_every": REFERENCES_EVERY,
    }
    with connection.transaction():
        # As a drain does; and the time comes after the lock, so that no day is counted without these batches.
        connection.execute(_LOCK, parameters)
        connection.execute(_RECIPIENTS, parameters)
        for statement in (_BATCHES, _DIGESTS, _TRANSACTIONS, _EVENTS, _ENTRIES, _BALANCES, _ORGANIZATIONS):
            connection.execute(statement)
        connection.execute("DROP TABLE filling")
    connection.execute("VACUUM batches")


def _number(connection: Connection, statement: str, *parameters: object) -> int:
    row = connection.execute(statement, parameters).fetchone()
    assert row is not None, "an aggregate always gives a row"
    return int(str(row[0]))


_LOCK = "SELECT id FROM organizations WHERE id = ANY(%(organizations)s) ORDER BY id FOR NO KEY UPDATE"
_RECIPIENTS = """
    CREATE TEMPORARY TABLE filling AS
    WITH numbered AS MATERIALIZED (
        SELECT n, (SELECT max(nextval('batches_id_seq'))
                   FROM generate_series(1, CAST(%(ids)s AS int) + 0 * n)) AS batch_id,
               (CAST(%(organizations)s AS bigint[]))[n %% %(of_them)s + 1] AS organization_id
        FROM generate_series(0, CAST(%(batches)s AS int) - 1) AS n
    ), moment AS MATERIALIZED (SELECT clock_timestamp() AS issued_at)
    SELECT organization_id, batch_id, position, issued_at,
           CASE WHEN position < %(holders)s THEN format('held.%%s.%%s@example.com', CAST(%(step)s AS int), position)
                WHEN i < %(users)s THEN format('user.%%s@example.com', i)
                ELSE format('stranger.%%s@example.com', i) END AS email,
           CASE WHEN position >= %(holders)s AND i < %(users)s THEN %(first_user_id)s + i END AS user_id,
           CASE WHEN n %% %(references_every)s = 0 THEN 'order-' || r END AS reference
    FROM numbered CROSS JOIN moment CROSS JOIN generate_series(0, CAST(%(recipients)s AS int) - 1) AS position
    CROSS JOIN LATERAL (SELECT %(first_row)s + CAST(n AS bigint) * %(recipients)s + position AS r) at
    CROSS JOIN LATERAL (SELECT r * %(stride)s %% %(addresses)s AS i) walk
"""
_BATCHES = """
    INSERT INTO batches (id, organization_id, sandbox, status, amount, atomic, recipient_count, emails, item_references,
                         created_at, issued_at, debited_count, debited_amount, current_balance, organization_name,
                         last_refill)
    OVERRIDING SYSTEM VALUE
    SELECT f.batch_id, o.id, false, 'issued', 1, false, f.count, f.emails, f.item_references, f.issued_at, f.issued_at,
           f.count, f.count, o.balance - sum(f.count) OVER (PARTITION BY o.id ORDER BY f.batch_id), o.name,
           o.last_refill
    FROM (SELECT batch_id, organization_id, issued_at, count(*), array_agg(email ORDER BY position) AS emails,
                 CASE WHEN bool_or(reference IS NOT NULL) THEN array_agg(reference ORDER BY position) END
                     AS item_references
          FROM filling GROUP BY 1, 2, 3) f
    JOIN organizations o ON o.id = f.organization_id
    ORDER BY f.batch_id
"""
_DIGESTS = f"""
    UPDATE batches b SET digest = {digest(DIGESTED, "b")} WHERE id IN (SELECT batch_id FROM filling)
"""  # noqa: S608  # As above.
_TRANSACTIONS = """
    INSERT INTO transactions (organization_id, batch_id, balance, user_id, position, sandbox, debited, credited, email,
                              reference)
    SELECT f.organization_id, f.batch_id, b.current_balance + b.recipient_count - 1 - f.position, f.user_id, f.position,
           false, true, f.user_id IS NOT NULL, f.email, f.reference
    FROM filling f JOIN batches b ON b.id = f.batch_id
    ORDER BY f.batch_id, f.position
"""
# As if they had been told and numbered, so that nothing is left to do.
_EVENTS = """
    WITH issued AS (
        SELECT organization_id, batch_id, issued_at, count(user_id) AS credited,
               row_number() OVER (PARTITION BY organization_id ORDER BY batch_id DESC) AS place_from_last
        FROM filling GROUP BY 1, 2, 3
    ), log AS (
        INSERT INTO event_logs AS l (organization_id, sandbox, last_sequence)
        SELECT organization_id, false, count(*) FROM issued GROUP BY 1
        ON CONFLICT (organization_id, sandbox) DO UPDATE SET last_sequence = l.last_sequence + excluded.last_sequence
        RETURNING organization_id, last_sequence
    )
    INSERT INTO events (organization_id, sandbox, sequence, id, created_at, type, batch_id, credited)
    SELECT organization_id, false, last_sequence + 1 - place_from_last,
           nextval(pg_get_serial_sequence('unnumbered_events', 'id')), issued_at, 'batch.issued', batch_id, credited
    FROM issued JOIN log USING (organization_id)
    ORDER BY batch_id
"""
_ENTRIES = """
    INSERT INTO user_entries (user_id, organization_id, created_at, transaction_id)
    SELECT user_id, organization_id, issued_at, transaction_id(batch_id, position) FROM filling
    WHERE user_id IS NOT NULL ORDER BY user_id, batch_id
"""
_BALANCES = """
    INSERT INTO user_balances (user_id, organization_id, points)
    SELECT user_id, organization_id, count(*) FROM filling WHERE user_id IS NOT NULL GROUP BY 1, 2 ORDER BY 1, 2
    ON CONFLICT (user_id, organization_id) DO UPDATE SET points = user_balances.points + excluded.points
"""
_ORGANIZATIONS = """
    UPDATE organizations o
    SET balance = balance - f.debited, held_points = held_points + f.held, held_count = held_count + f.held
    FROM (SELECT organization_id, count(*) AS debited, count(*) - count(user_id) AS held FROM filling GROUP BY 1) f
    WHERE o.id = f.organization_id
"""
