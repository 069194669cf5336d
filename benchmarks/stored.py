"""Storing many transactions quickly: whole issued batches by a few statements, with books that balance."""

from datetime import UTC, datetime

import psycopg

from app.batches.batch import DIGESTED
from app.postgres.database import digest

# Every batch pays every user, like a service that sends to the same people many times.
_BATCHES = """
    INSERT INTO batches (id, organization_id, sandbox, status, amount, atomic, recipient_count, emails, issued_at,
                         debited_count, debited_amount, current_balance, organization_name, last_refill)
    OVERRIDING SYSTEM VALUE
    SELECT (SELECT max(nextval('batches_id_seq')) FROM generate_series(0, u.count / 16)),
           o.id, false, 'issued', 1, false, u.count, u.emails, %(now)s, u.count, u.count,
           o.balance - n * u.count, o.name, o.last_refill
    FROM organizations o
    CROSS JOIN (SELECT count(*) AS count, array_agg(email ORDER BY id) AS emails FROM users) u
    CROSS JOIN generate_series(1, %(batches)s) AS n
    WHERE o.id = %(organization_id)s
    ORDER BY n
"""
_DIGESTS = f"""
    UPDATE batches b SET digest = {digest(DIGESTED, "b")}
    WHERE organization_id = %(organization_id)s AND issued_at = %(now)s
"""  # noqa: S608  # It is put together from words of the code.
_TRANSACTIONS = """
    INSERT INTO transactions (organization_id, batch_id, balance, user_id, position, sandbox, debited, credited, email)
    SELECT b.organization_id, b.id, b.current_balance + b.recipient_count - 1 - u.position, u.id, u.position,
           false, true, true, u.email
    FROM batches b CROSS JOIN (SELECT id, email, row_number() OVER (ORDER BY id) - 1 AS position FROM users) u
    WHERE b.organization_id = %(organization_id)s AND b.issued_at = %(now)s
    ORDER BY b.id, u.position
"""
# As if they had been told and numbered, so that nothing is left to do.
_EVENTS = """
    WITH log AS (
        INSERT INTO event_logs AS l (organization_id, sandbox, last_sequence)
        VALUES (%(organization_id)s, false, %(batches)s)
        ON CONFLICT (organization_id, sandbox) DO UPDATE SET last_sequence = l.last_sequence + %(batches)s
        RETURNING last_sequence - %(batches)s AS before
    )
    INSERT INTO events (organization_id, sandbox, sequence, id, created_at, type, batch_id, credited)
    SELECT organization_id, false, log.before + row_number() OVER (ORDER BY b.id),
           nextval(pg_get_serial_sequence('unnumbered_events', 'id')), issued_at, 'batch.issued', b.id, recipient_count
    FROM batches b CROSS JOIN log
    WHERE organization_id = %(organization_id)s AND issued_at = %(now)s
    ORDER BY b.id
"""
_ENTRIES = """
    INSERT INTO user_entries (user_id, organization_id, created_at, transaction_id)
    SELECT t.user_id, t.organization_id, b.issued_at, transaction_id(t.batch_id, t.position)
    FROM batches b JOIN transactions t ON t.batch_id = b.id
    WHERE b.organization_id = %(organization_id)s AND b.issued_at = %(now)s
    ORDER BY t.user_id, t.batch_id
"""
_BALANCES = """
    INSERT INTO user_balances (user_id, organization_id, points)
    SELECT id, %(organization_id)s, %(batches)s FROM users
    ON CONFLICT (user_id, organization_id) DO UPDATE SET points = user_balances.points + excluded.points
"""
_ORGANIZATION = """
    UPDATE organizations SET balance = balance - %(batches)s * (SELECT count(*) FROM users)
    WHERE id = %(organization_id)s
"""


def store(connection: psycopg.Connection[tuple[object, ...]], organization_id: int, *, batches: int) -> None:
    """Issue `batches` batches of one point to each user, in one transaction."""
    parameters = {"organization_id": organization_id, "batches": batches, "now": datetime.now(UTC)}
    with connection.transaction():
        for statement in (_BATCHES, _DIGESTS, _TRANSACTIONS, _EVENTS, _ENTRIES, _BALANCES, _ORGANIZATION):
            connection.execute(statement, parameters)
