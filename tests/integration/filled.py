"""A filled database, made set by set: a third of a million transactions of every kind, and many others' beside them."""

from sqlalchemy import Connection, Engine, text

from app.postgres.connections import disable_timeouts

# One organization's: batches of one recipient, then large ones; now and then one that the balance did
# not pay, or not whole; and among the addresses one that is in every batch, and one that is in two.
SMALL, LARGE, LARGE_RECIPIENTS = 30_000, 30, 10_000
BUSY, RARE = "busy@example.com", "rare@example.com"


def fill(engine: Engine) -> None:
    """Fill the empty tables. Times go with the ids, except that each hundredth batch was issued a day late."""
    with engine.begin() as connection:
        _without_limit(connection)
        for statement in _FILL.split(";"):
            connection.execute(text(statement), _PARAMETERS)
    with engine.connect().execution_options(isolation_level="AUTOCOMMIT") as connection:
        _without_limit(connection)
        connection.execute(text("VACUUM (ANALYZE)"))


def _without_limit(connection: Connection) -> None:
    """Let a slow machine take its time, in the client and in the server, until the connection is closed."""
    disable_timeouts(connection)
    connection.execute(text("SET statement_timeout = 0"))


_PARAMETERS = {"small": SMALL, "large": LARGE, "recipients": LARGE_RECIPIENTS, "busy": BUSY, "rare": RARE}

_FILL = """
    INSERT INTO organizations (name) SELECT format('Organization %s', n) FROM generate_series(1, 3) n;
    INSERT INTO users (email, email_key, first_name, last_name)
    SELECT format('u%s@example.com', n), format('u%s@example.com', n), 'First', 'Last' FROM generate_series(1, 9) n;
    CREATE TEMPORARY TABLE batch ON COMMIT DROP AS
    SELECT n, CASE WHEN n <= :small THEN 1 ELSE :recipients END AS recipients,
           timestamptz '2026-01-01T00:00:00Z' + n * interval '1 minute' AS moment
    FROM generate_series(1, CAST(:small AS int) + CAST(:large AS int)) n;
    INSERT INTO batches (organization_id, sandbox, status, amount, atomic, recipient_count, emails, created_at,
                         issued_at, debited_count, debited_amount, current_balance, organization_name, last_refill)
    SELECT 1, false, 'issued', 5, false, recipients,
           ARRAY(SELECT CASE WHEN n IN (7, 20007) THEN :rare WHEN p = 1 THEN :busy
                             ELSE format('a%s@example.com', (n * 31 + p) % 50000) END
                 FROM generate_series(1, recipients) p),
           moment, moment + CASE WHEN n % 100 = 0 THEN interval '1 day' ELSE interval '1 second' END,
           debited, 5 * debited, 0, 'Organization 1', 0
    FROM batch CROSS JOIN LATERAL (
        SELECT CASE WHEN n % 1000 = 0 THEN 0 WHEN n % 1000 = 1 THEN recipients / 2 ELSE recipients END AS debited
    ) d
    ORDER BY n;
    INSERT INTO batches (organization_id, sandbox, status, amount, atomic, recipient_count, emails, created_at,
                         issued_at, debited_count, debited_amount, current_balance, organization_name, last_refill)
    SELECT o, sandbox, 'issued', 5, false, 1, ARRAY[CAST(:busy AS text)], moment, moment, 1, 5, 0, 'Another', 0
    FROM batch, unnest(ARRAY[1, 2, 3], ARRAY[true, false, true]) AS other (o, sandbox) WHERE n <= 5000 ORDER BY n;
    INSERT INTO transactions (organization_id, batch_id, position, sandbox, user_id, debited, credited, balance, email)
    SELECT b.organization_id, b.id, r.n - 1, b.sandbox,
           CASE WHEN r.n <= debited_count AND (b.id + r.n) % 997 = 0 THEN 1 END,
           r.n <= debited_count, r.n <= debited_count AND (b.id + r.n) % 997 = 0, 0, r.email
    FROM batches b CROSS JOIN LATERAL unnest(b.emails) WITH ORDINALITY AS r (email, n)
    ORDER BY b.id, r.n;
    INSERT INTO user_entries (user_id, organization_id, created_at, transaction_id)
    SELECT t.user_id, t.organization_id, b.issued_at, transaction_id(t.batch_id, t.position)
    FROM transactions t JOIN batches b ON b.id = t.batch_id WHERE t.credited AND NOT t.sandbox
"""
