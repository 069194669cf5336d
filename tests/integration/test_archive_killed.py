"""The archive killed: at each of its steps it goes on where it was, and no row is ever in neither place."""

import os
import subprocess
import sys
from contextlib import ExitStack
from pathlib import Path

import pytest
from sqlalchemy import text

from app.postgres import partitions
from app.postgres.connections import engine
from app.postgres.database import snapshot, transaction
from tests.integration import archiving, books, races
from tests.integration.archiving import ANN, BOB, SIZE, archive, draw_ids_to, finish, rows
from tests.integration.killed_archive import BEFORE

pytestmark = pytest.mark.usefixtures("small_partitions")

# How often it is killed at each place; POINTS_ARCHIVE_KILLS=20 for a long run.
_ROUNDS = int(os.environ.get("POINTS_ARCHIVE_KILLS", "2"))


def _fill(ranges: int) -> None:
    """Fill so many partitions, each with two batches that were claimed and, in part, taken back."""
    organization_id = books.make_organization(10_000)
    books.make_users(ANN)
    for number in range(ranges):
        draw_ids_to(max(1, number * SIZE))
        batch_id = books.issue_now(organization_id, [ANN, BOB], 5)
        books.issue_now(organization_id, [BOB], [7])
        books.reverse_now(organization_id, batch_id=batch_id, amount=1)
    draw_ids_to(ranges * SIZE)
    books.make_users(BOB)
    finish()


def test_a_run_that_is_killed_at_any_step_is_gone_on_with_and_no_row_is_in_neither_place(tmp_path: Path) -> None:
    _fill(_ROUNDS)
    assert books.breaches() == []
    was = {first: rows(first, first + SIZE) for first in range(0, _ROUNDS * SIZE, SIZE)}
    command = [sys.executable, "-m", "tests.integration.killed_archive", str(tmp_path)]
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as archiving_process:
        assert archiving_process.stdin is not None
        assert archiving_process.stdout is not None
        for number in range(_ROUNDS):
            for place in BEFORE:
                archiving_process.stdin.write(f"{place}\n")
                archiving_process.stdin.flush()
                assert archiving_process.stdout.readline() == "killed\n", place
                for first, those in was.items():
                    assert archiving.is_in_one_place(tmp_path, those, first, first + SIZE), place
                if number == 0 or place == "the partition is dropped":
                    assert books.breaches() == [], place
        archiving_process.stdin.write("nowhere\n")
        archiving_process.stdin.flush()
        assert archiving_process.stdout.readline() == "ended 0\n"
        archiving_process.stdin.close()
    assert rows(0, _ROUNDS * SIZE) == []
    for first, those in was.items():
        assert archiving.archived_rows(tmp_path, first, first + SIZE) == those
    assert list(tmp_path.glob("*.part")) == []
    assert books.breaches() == []


_PENDING = text("SELECT count(*) FROM pg_inherits WHERE inhdetachpending")


def test_a_partition_that_was_not_detached_to_the_end_is_gone_on_with_or_attached_again(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    _fill(1)
    was = rows()
    monkeypatch.setattr("app.postgres.connections.STATEMENT_TIMEOUT_MS", 1_000)
    engine().dispose()
    with ExitStack() as reading:

        def read() -> None:
            reader = reading.enter_context(snapshot())
            assert reader.execute(text("SELECT count(*) FROM transactions")).scalar_one() == len(was)

        with races.before_statement("DETACH PARTITION", read):
            waiting = archive(tmp_path)["waiting"]
        assert [one["reason"] for one in waiting] == ["something that began before still runs; the next run goes on"]
        with transaction() as connection:
            assert connection.execute(_PENDING).scalar_one() == 1
        assert (rows(), archiving.archived_rows(tmp_path)) == ([], was), "nobody asks the partition any more"
        assert books.breaches() == []
        partitions.make()  # The upkeep goes on.
    [file] = tmp_path.glob("*.transactions.parquet")
    file.write_bytes(file.read_bytes()[:-1])
    [reason] = [one["reason"] for one in archive(tmp_path)["waiting"]]
    assert reason == f"its files are no longer whole in {tmp_path}; they are written again by the next run"
    assert rows() == was
    assert books.breaches() == []
    assert archive(tmp_path)["waiting"] == []
    assert (rows(), archiving.archived_rows(tmp_path)) == ([], was)
    assert books.breaches() == []
