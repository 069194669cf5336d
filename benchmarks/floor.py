"""Section `floor`: the time PostgreSQL needs to COPY one batch's rows into a fixed table of the benchmark."""

import contextlib
import time
from collections.abc import Iterator
from datetime import UTC, datetime
from functools import partial

import psycopg

from benchmarks.in_process import in_this_process
from benchmarks.options import Options
from benchmarks.rows import Measurement, Row, named, repeated, take_turns
from benchmarks.service import Service, running

SIZES = (1, 10, 100, 1_000, 10_000)

# It stays the same when the service's tables change.
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

Connection = psycopg.Connection[tuple[object, ...]]


def measure(options: Options) -> list[Row]:
    """Measure the floor alone; other sections measure it again beside their figures."""
    with beside() as (_, connection):
        measures = {named("floor", recipients=size): measurement(connection, size) for size in SIZES}
        return take_turns(measures, rounds=options.rounds)


@contextlib.contextmanager
def beside() -> Iterator[tuple[Service, Connection]]:
    """Start a service whose functions this process can call, and make the floor's table in its database."""
    with running() as service, in_this_process(service), service.connect() as connection:
        for statement in _TABLE.split(";"):
            if statement.strip():
                connection.execute(statement)
        yield service, connection


def measurement(connection: Connection, size: int) -> Measurement:
    """Return the measurement of the floor for a batch of this size."""
    emails = [f"{place}.floor@example.com" for place in range(size)]
    return repeated(partial(_copy_rows, connection, emails), times=repeats(size))


def repeats(size: int) -> int:
    """Return how often one measurement repeats a batch of this size: small ones are too short to time once."""
    return max(1, min(20, 2_000 // size))


def _copy_rows(connection: Connection, emails: list[str]) -> dict[str, float]:
    """COPY one row per address, update one organization row, commit."""
    moment = datetime.now(UTC)
    rows = [(1, place, 1, place, 50, 1_000_000 - place, email, moment) for place, email in enumerate(emails)]
    started = time.perf_counter()
    with connection.transaction(), connection.cursor() as cursor:
        with cursor.copy(_COPY) as copy:
            for row in rows:
                copy.write_row(row)
        cursor.execute("UPDATE bench_floor_organization SET balance = balance + 1 WHERE id = 1")
    return {"time_s": time.perf_counter() - started}
