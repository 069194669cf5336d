"""A recipient whose transaction PostgreSQL refuses or ends the session for, until it is cured: planted beforehand."""

from sqlalchemy import Connection

RECIPIENT = "poison@example.com"

_INSTALL = f"""
    CREATE TABLE crash_poison (ends_session boolean);
    CREATE FUNCTION crash_poison() RETURNS trigger LANGUAGE plpgsql AS $$
    BEGIN
        IF EXISTS (SELECT FROM crash_poison WHERE ends_session) THEN
            PERFORM pg_terminate_backend(pg_backend_pid());
            PERFORM pg_sleep(60);  -- Where the end is noticed.
        ELSIF EXISTS (SELECT FROM crash_poison) THEN
            RAISE check_violation;
        END IF;
        RETURN NEW;
    END $$;
    CREATE TRIGGER crash_poison BEFORE INSERT ON transactions
        FOR EACH ROW WHEN (NEW.email = '{RECIPIENT}') EXECUTE FUNCTION crash_poison();
"""


def install(connection: Connection) -> None:
    """Make it possible, while nobody uses the table: to lock it later could end in a deadlock of our own."""
    connection.exec_driver_sql(_INSTALL)


def begin(connection: Connection, *, ends_session: bool) -> None:
    """From now on no transaction of the recipient can be written."""
    connection.exec_driver_sql("INSERT INTO crash_poison VALUES (%(ends)s)", {"ends": ends_session})


def cure(connection: Connection) -> None:
    connection.exec_driver_sql("DELETE FROM crash_poison")
