"""A history that may be archived, and the command that does it."""

from datetime import UTC, datetime
from inspect import unwrap
from pathlib import Path
from typing import Any
from unittest.mock import patch

from pyarrow import parquet
from sqlalchemy import text

from app.archive import lately
from app.batches.read import forget_idempotency_keys
from app.batches.schedule import cancel
from app.cli.archive import archive as archive_command
from app.ledger import held
from app.postgres import partitions
from app.postgres.database import transaction
from app.statement import counting
from tests.integration import books

SIZE = 64
ANN, BOB, CID, DAN, MEG = (f"{name}@example.com" for name in ("ann", "bob", "cid", "dan", "o'még"))
ALWAYS = datetime(2100, 1, 1, tzinfo=UTC)


def write_history() -> tuple[int, int]:
    """Fill the first partition with what two organizations did, and return their ids; only Dan's points are held."""
    acme, globex = books.make_organization(1_000, sandbox_balance=500), books.make_organization(1_000, name="Globex")
    books.make_users(ANN)
    books.issue_now(acme, [ANN, BOB], 10)
    whole = books.queue_batch(globex, [ANN, BOB, MEG], [1, 2, 3], references=["a", "", "ü\nb"], label='say "no"')
    books.drain_all(globex)
    books.issue_now(globex, [ANN, CID], 600)  # Of 1,200 points 600 are paid.
    books.reverse_now(acme, batch_id=books.issue_now(acme, [ANN, BOB], 7, sandbox=True), sandbox=True)
    books.make_users(BOB, CID, MEG)
    books.reverse_now(acme, batch_id=books.issue_now(acme, [ANN, BOB], 20), amount=5)
    books.reverse_now(globex, batch_id=whole)
    books.queue_batch(acme, [ANN], 1, idempotency_key="once")
    cancelled = books.queue_batch(acme, [ANN], 1, idempotency_key="never")
    with transaction() as connection:
        cancel(connection, cancelled, organization_id=acme, sandbox=False)
    books.drain_all(acme)
    books.issue_now(acme, [DAN], 9)
    draw_ids_to(SIZE)
    return acme, globex


def draw_ids_to(newest_id: int) -> None:
    """Have the next batch get the id after this one, and its partition made."""
    books.execute(f"SELECT setval('batches_id_seq', {newest_id})")
    partitions.make()


def finish() -> None:
    """Do what the upkeep has done once the days are over: fold, list, count, forget the idempotency keys."""
    books.fold()
    books.fold_claims()
    list_all()
    close_the_days()
    with transaction() as connection:
        forget_idempotency_keys(connection, older_than_days=0, at_most=1_000)


def list_all() -> None:
    """List what is held in full partitions: the first runs tell the issues, and wait for them."""
    for _ in range(4):
        held.list_full()


def close_the_days() -> None:
    """Count all days up to tomorrow's end."""
    with transaction() as connection:
        ids = list(connection.execute(text("SELECT id FROM organizations")).scalars())
    with patch.object(counting, "YOUNG_S", -2 * 86_400):
        for organization_id in ids:
            for sandbox in (False, True):
                with transaction() as connection:
                    counting.count_step(connection, organization_id, sandbox=sandbox)


def archive(directory: Path, *, before: datetime = ALWAYS, days: int = -36_500) -> dict[str, Any]:
    """Give the command, and return its document. What is younger than `days` stays."""
    assert archive_command.callback is not None
    with patch.object(lately, "DAYS", days):
        answer = unwrap(archive_command.callback)(before=before.replace(tzinfo=None), directory=directory)
    document: dict[str, Any] = answer._document
    return document


def rows(first: int = 0, end: int = SIZE) -> list[dict[str, Any]]:
    """Return the transactions of a range, as they are in the database."""
    with transaction() as connection:
        statement = (
            "SELECT * FROM transactions WHERE batch_id >= :first AND batch_id < :end ORDER BY batch_id, position"
        )
        found = connection.execute(text(statement), {"first": first, "end": end})
        return [row._asdict() for row in found]


def archived_rows(directory: Path, first: int = 0, end: int = SIZE) -> list[dict[str, Any]]:
    """Return the transactions of a range, as they are in its file."""
    read: list[dict[str, Any]] = parquet.read_table(
        directory / f"batches-{first}-to-{end - 1}.transactions.parquet"
    ).to_pylist()
    return read


def archived_heads(directory: Path, first: int = 0, end: int = SIZE) -> list[dict[str, Any]]:
    """Return the issued batches of a range, as they are in its file."""
    read: list[dict[str, Any]] = parquet.read_table(
        directory / f"batches-{first}-to-{end - 1}.batches.parquet"
    ).to_pylist()
    return read


def is_in_one_place(directory: Path, was: list[dict[str, Any]], first: int, end: int) -> bool:
    """Tell whether the rows of a range are whole in the database, or else whole in its file."""
    here = rows(first, end)
    return here == was or (not here and archived_rows(directory, first, end) == was)
