"""The archive: ranges whose time is over become files that hold each row, and the books stay proven without them."""

import json
import subprocess
import sys
from datetime import UTC, datetime, timedelta
from hashlib import sha256
from pathlib import Path
from typing import Any

import pytest
from sqlalchemy import text

from app.archive import writing
from app.archive.alone import ArchiveRuns, alone
from app.batches.read import forget_idempotency_keys
from app.batches.schedule import cancel
from app.errors import Refused
from app.postgres.database import transaction
from tests.integration import archiving, books
from tests.integration.archiving import ANN, DAN, SIZE, archive, archived_rows, finish, rows, write_history

pytestmark = pytest.mark.usefixtures("small_partitions")

NOTHING: dict[str, Any] = {"archived": [], "waiting": [], "erased": []}


def test_a_range_whose_time_is_over_is_in_the_files_row_by_row_and_the_books_balance_without_it(tmp_path: Path) -> None:
    acme, globex = write_history()
    finish()
    assert books.breaches() == []
    assert archive(tmp_path)["waiting"] == [
        {"first_batch_id": 0, "last_batch_id": SIZE - 1, "reason": "points of it are held"}
    ]
    books.make_users(DAN)
    finish()
    was = rows()
    assert len(was) > 10
    done = archive(tmp_path)
    assert done["waiting"] == []
    assert done["archived"][0]["transactions"] == len(was)
    assert rows() == []
    assert archived_rows(tmp_path) == was
    assert books.breaches() == []
    archiving.draw_ids_to(SIZE + 1)
    books.issue_now(acme, [DAN], 1)
    books.issue_now(globex, [DAN], 1)
    assert books.breaches() == []
    manifest = json.loads((tmp_path / "batches-0-to-63.json").read_bytes())
    assert (manifest["first_batch_id"], manifest["last_batch_id"]) == (0, SIZE - 1)
    for file in manifest["files"]:
        assert sha256((tmp_path / file["name"]).read_bytes()).hexdigest() == file["sha256"]
    assert manifest["files"][0]["rows"] == len(was)
    assert sum(of_mode["transactions"] for of_mode in manifest["sums"]) == len(was)
    assert {(of_mode["organization_id"], of_mode["sandbox"]) for of_mode in manifest["sums"]} == {
        (acme, False),
        (acme, True),
        (globex, False),
    }
    assert [head["status"] for head in archiving.archived_heads(tmp_path)] == ["issued"] * manifest["files"][1]["rows"]


def _reason(directory: Path, **asked: Any) -> str | None:
    """Return why the first partition waits; None if it does not."""
    waiting = archive(directory, **asked)["waiting"]
    return waiting[0]["reason"] if waiting else None


def test_a_range_waits_until_all_of_it_is_over_and_is_told_why(tmp_path: Path) -> None:
    assert archive(tmp_path) == NOTHING
    acme, globex = books.make_organization(1_000), books.make_organization(1_000)
    books.make_users(ANN)
    late = books.queue_batch(acme, [ANN], 1)
    scheduled = books.queue_batch(globex, [ANN], 1, send_at=datetime.now(UTC) + timedelta(days=1))
    newest = books.queue_batch(globex, [ANN, DAN], 3, idempotency_key="once")
    books.drain_all(globex)
    with transaction() as connection:
        moment: datetime = connection.execute(text("SELECT clock_timestamp()")).scalar_one()
    books.drain_all(acme)
    assert archive(tmp_path) == NOTHING, "it is not full"
    archiving.draw_ids_to(SIZE)

    assert _reason(tmp_path, before=datetime(2026, 1, 1, tzinfo=UTC)) == "its newest batch is not older than that day"
    assert _reason(tmp_path) == "points of it are held"
    books.make_users(DAN)
    assert _reason(tmp_path) == "what was held in it is not listed yet"
    archiving.list_all()
    assert _reason(tmp_path) == "credits of it are not folded yet"
    books.fold()
    books.queue_reversal(globex, batch_id=newest)
    assert _reason(tmp_path) == "a reversal of it is queued"
    books.drain_all(globex)
    books.fold()
    assert _reason(tmp_path) == f"batch {scheduled} is not over"
    with transaction() as connection:
        cancel(connection, scheduled, organization_id=globex, sandbox=False)
    assert _reason(tmp_path, before=moment) == f"batch {late} is not older than that day"
    assert _reason(tmp_path) == f"batch {newest} still answers to its idempotency key"
    with transaction() as connection:
        forget_idempotency_keys(connection, older_than_days=0, at_most=9)
    assert _reason(tmp_path) == "its days are not closed yet"
    assert list(tmp_path.iterdir()) == []
    archiving.close_the_days()
    assert _reason(tmp_path) is None
    assert archive(tmp_path) == NOTHING, "it is done"
    assert books.breaches() == []


def test_a_file_that_is_damaged_is_written_again_and_nothing_is_dropped_for_one(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    write_history()
    books.make_users(DAN)
    finish()
    was = rows()
    files = tmp_path / "archive"

    def damage(*_: object) -> None:
        [file] = files.glob("*.transactions.parquet")
        file.write_bytes(file.read_bytes()[:-8] + b"12345678")

    def after(is_damaged: list[bool], check: Any) -> Any:
        def checked(*arguments: Any) -> Any:
            if is_damaged.pop():
                damage()
            return check(*arguments)

        return checked

    with monkeypatch.context() as patched:
        patched.setattr(writing, "_compare", after([True] * 5, writing._compare))
        with pytest.raises(Refused, match=r"do not hold what the database has.*Nothing was dropped"):
            archive(files)
    assert (rows(), books.breaches()) == (was, [])
    with monkeypatch.context() as patched:
        patched.setattr(writing, "_compare", after([False, False, True], writing._compare))
        # Before it is archived, and before it is dropped.
        patched.setattr(writing, "are_whole", after([True, False, True], writing.are_whole))
        reason = f"its files are no longer whole in {files}; they are written again by the next run"
        assert _reason(files) == reason
    assert (rows(), books.breaches()) == (was, [])
    assert _reason(files) is None
    assert (rows(), archived_rows(files)) == ([], was)
    assert books.breaches() == []


def test_one_process_archives_and_what_cannot_be_written_is_told_in_a_sentence(tmp_path: Path) -> None:
    write_history()
    books.make_users(DAN)
    finish()
    with alone(), pytest.raises(ArchiveRuns, match="Another process archives now"):
        archive(tmp_path)
    (tmp_path / "file").touch()
    with pytest.raises(Refused, match=r"cannot be written: .*Nothing was lost"):
        archive(tmp_path / "file")
    program = Path(sys.executable).with_name("points")
    command = [str(program), "archive", "--before", "2026-01-01", "--to", str(tmp_path), "--json"]
    done = subprocess.run(command, capture_output=True, text=True, check=True)
    [waiting] = json.loads(done.stdout)["waiting"]
    assert waiting["reason"] == "its newest batch is not older than that day"
    assert done.stderr == f"The range of batches 0 to 63 waits: {waiting['reason']}.\n"
    with pytest.MonkeyPatch.context() as without:
        without.setattr("app.archive.find_spec", lambda _: None)
        with pytest.raises(Refused, match="Install the service with its extra `archive`"):
            archive(tmp_path)
