"""The floor: what PostgreSQL needs to COPY the rows of one batch into a fixed table of the bench's own."""

import time
from datetime import UTC, datetime

import psycopg

_TABLE = """
    CREATE TABLE IF NOT EXISTS bench_floor (
        id bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
        organization_id bigint NOT NULL, user_id bigint NOT NULL, batch_id bigint NOT NULL,
        position int NOT NULL, amount bigint NOT NULL, balance bigint NOT NULL,
        email text NOT NULL, created_at timestamptz NOT NULL
    );
    CREATE INDEX IF NOT EXISTS bench_floor_listing ON bench_floor (organization_id, created_at);
    CREATE TABLE IF NOT EXISTS bench_floor_organization (id bigint PRIMARY KEY, balance bigint NOT NULL);
    INSERT INTO bench_floor_organization VALUES (1, 0) ON CONFLICT DO NOTHING;
"""
_COPY = "COPY bench_floor (organization_id, user_id, batch_id, position, amount, balance, email, created_at) FROM STDIN"


def prepare(connection: psycopg.Connection[tuple[object, ...]]) -> None:
    """Make the floor's tables; they do not move when ours do."""
    connection.execute(_TABLE)
    connection.commit()


def copy_rows(connection: psycopg.Connection[tuple[object, ...]], emails: list[str]) -> float:
    """COPY one row per address, update one organization row, commit; return the seconds it took."""
    moment = datetime.now(UTC)
    rows = [(1, place, 1, place, 50, 1_000_000 - place, email, moment) for place, email in enumerate(emails)]
    started = time.perf_counter()
    with connection.cursor() as cursor:
        with cursor.copy(_COPY) as copy:
            for row in rows:
                copy.write_row(row)
        cursor.execute("UPDATE bench_floor_organization SET balance = balance + 1 WHERE id = 1")
    connection.commit()
    return time.perf_counter() - started
