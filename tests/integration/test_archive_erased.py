"""An erased user is taken out of the archive by its next run, killed or not, and the proof of both stays whole."""

from contextlib import suppress
from hashlib import sha256
from pathlib import Path
from typing import Any
from unittest.mock import patch

import pytest
from pyarrow import parquet

from app import users
from app.archive import dropping, writing
from app.archive.proving import prove
from app.cli.status_of_archive import archive_line, look_at_archive
from app.erasing.erase import erase_user
from app.ledger import sandbox
from app.ledger.registering import change_user
from app.postgres.database import transaction
from app.values.addresses import parse
from tests.integration import archiving, books
from tests.integration.archiving import SIZE, archive, archived_rows, finish, rows
from tests.integration.killed_archive import BEFORE_ERASED, children
from tests.integration.needles import tables_with

pytestmark = pytest.mark.usefixtures("small_partitions")

OLD, NEW, BOB = "Ann.Old@Example.com", "Ann.New@Example.org", "bob@example.com"


class _Ann:
    """A user, and the other that has her first address now; `erased` is what stands at each transaction afterwards."""

    def __init__(self) -> None:
        acme = books.make_organization(1_000, sandbox_balance=100)
        books.make_users(BOB)
        before = books.issue_now(acme, [BOB, OLD], 600)  # Nobody had an account there, and it was not paid.
        [self.id] = books.make_users(OLD)
        paid = books.issue_now(acme, [OLD, BOB], 10)
        with transaction() as connection:
            change_user(connection, self.id, {"address": parse(NEW)})
        since = books.issue_now(acme, [BOB, OLD], 300)  # Whose address that is now, nobody knows.
        [self.other] = books.make_users(OLD)
        others = books.issue_now(acme, [OLD], 10)
        now = books.issue_now(acme, [NEW], 10)
        with transaction() as connection:
            of_sandbox = sandbox.register(connection, acme, users.new_user(NEW, "Ann", "Lee"))[0].id
        rehearsed = books.issue_now(acme, [NEW, BOB], 4, sandbox=True)
        archiving.draw_ids_to(SIZE)
        finish()
        ann = f"erased-{self.id}"
        self.erased = [
            *((before, BOB), (before, ann), (paid, ann), (paid, BOB), (since, BOB), (since, OLD), (others, OLD)),
            *((now, ann), (rehearsed, f"erased-{of_sandbox}"), (rehearsed, BOB)),
        ]


def _held(directory: Path) -> list[tuple[int, str]]:
    path = next(directory.glob("*.transactions.parquet"))
    table = parquet.read_table(path, columns=["batch_id", "email"])
    return list(zip(*(column.to_pylist() for column in table.columns), strict=True))


def _has(directory: Path, needle: str) -> list[str]:
    """Return the files in which any value of any column has a text."""
    return [
        path.name
        for path in sorted(directory.iterdir())
        if needle.lower()
        in (str(parquet.read_table(path).to_pydict()) if path.suffix == ".parquet" else path.read_text()).lower()
    ]


def _is_whole(directory: Path) -> None:
    assert books.breaches() == []
    assert prove(directory).faults == []


def _waits() -> int:
    with transaction() as connection:
        found = look_at_archive(connection)
    said = archive_line(found)
    if found["erasures_waiting"] is None:
        assert said == {}
        return 0
    assert said["Archive"].endswith("in the files of 1 range, since 0 hours: give `points archive`")
    return int(found["erasures_waiting"]["users"])


def test_an_erased_user_is_taken_out_of_the_files_whenever_the_run_is_killed(tmp_path: Path) -> None:
    ann = _Ann()
    archive(tmp_path)
    was = archived_rows(tmp_path)
    digest = sha256((tmp_path / "batches-0-to-63.transactions.parquet").read_bytes()).hexdigest()
    assert _has(tmp_path, NEW) == ["batches-0-to-63.transactions.parquet"]
    assert _waits() == 0
    erase_user(ann.id)
    erase_user(ann.id)
    assert _waits() == 2, "her account, and that of the sandbox"
    with children(tmp_path) as go_on:
        for place in BEFORE_ERASED:
            assert go_on(place) == "killed", place
            assert prove(tmp_path).faults == [], place
            assert _waits() == 2
    elsewhere = tmp_path / "elsewhere"
    [waits] = archive(elsewhere)["waiting"]
    assert waits["reason"] == f"its files are not whole in {elsewhere}, and 2 erased users may be in them"
    elsewhere.rmdir()
    archive(tmp_path)
    _is_whole(tmp_path)
    assert _waits() == 0
    assert _has(tmp_path, NEW) == []
    books.execute("UPDATE archived_ranges SET file = 'batches-0-to-63', sha256 = '\\x" + digest + "'")  # A restore.
    assert archive(tmp_path)["erased"] == []
    _is_whole(tmp_path)
    assert sorted(path.name for path in tmp_path.iterdir()) == [
        f"batches-0-to-63.1.{kind}" for kind in ("batches.parquet", "json", "transactions.parquet")
    ]
    assert _held(tmp_path) == ann.erased
    now = parquet.read_table(next(tmp_path.glob("*.transactions.parquet"))).to_pylist()
    for before, after in zip(was, now, strict=True):
        assert before | {name: after[name] for name in ("email", "email_key")} == after
    assert archive(tmp_path) == {"archived": [], "erased": [], "waiting": []}
    erase_user(ann.other)
    assert [one["file"] for one in archive(tmp_path)["erased"]] == ["batches-0-to-63.2"]
    assert _has(tmp_path, OLD) == []
    _is_whole(tmp_path)


@pytest.mark.parametrize(
    ("where", "name"),
    [
        pytest.param(writing, "write_and_compare", id="closed"),
        pytest.param(dropping, "detach", id="archived"),
        pytest.param(dropping, "empty_batches", id="dropped"),
    ],
)
def test_a_user_who_is_erased_while_a_range_is_on_its_way_is_in_no_file(tmp_path: Path, where: Any, name: str) -> None:
    ann = _Ann()
    with patch.object(where, name, side_effect=ArithmeticError), suppress(ArithmeticError):
        archive(tmp_path)
    erase_user(ann.id)
    assert _waits() == 2
    archive(tmp_path)
    archive(tmp_path)
    assert rows() == []
    assert _held(tmp_path) == ann.erased
    assert _waits() == 0
    assert _has(tmp_path, NEW) == []
    assert tables_with([NEW.lower()]) == []
    _is_whole(tmp_path)


def test_a_range_that_is_opened_again_takes_what_waits_for_its_files_with_it(tmp_path: Path) -> None:
    ann = _Ann()
    with patch.object(writing, "write_and_compare", side_effect=ArithmeticError), suppress(ArithmeticError):
        archive(tmp_path)
    erase_user(ann.id)
    books.execute("DELETE FROM archived_ranges")
    assert _waits() == 0
    archive(tmp_path)
    assert _has(tmp_path, NEW) == []
