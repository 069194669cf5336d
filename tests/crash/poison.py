"""A recipient whose transaction PostgreSQL refuses, until it is cured: planted before anybody sends."""

from sqlalchemy import Connection

RECIPIENT = "poison@example.com"

_INSTALL = f"""
    CREATE TABLE crash_poison (works boolean);
    CREATE FUNCTION crash_poison() RETURNS trigger LANGUAGE plpgsql AS $$
    BEGIN
        IF EXISTS (SELECT FROM crash_poison) THEN
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


def begin(connection: Connection) -> None:
    """From now on no transaction of the recipient can be written."""
    connection.exec_driver_sql("INSERT INTO crash_poison VALUES (true)")


def cure(connection: Connection) -> None:
    connection.exec_driver_sql("DELETE FROM crash_poison")
