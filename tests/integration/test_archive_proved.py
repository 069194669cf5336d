"""`points audit --archive`: a file of the archive that is changed, gone or in another's place is named, and how."""

from hashlib import sha256
from inspect import unwrap
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from pyarrow import parquet

from app.cli.audit import audit as audit_command
from tests.integration import archiving, books
from tests.integration.archiving import ANN, BOB, SIZE, archive, finish

pytestmark = pytest.mark.usefixtures("small_partitions")

_NAMES = [f"batches-{first}-to-{first + SIZE - 1}" for first in (0, SIZE)]


@pytest.fixture
def directory(tmp_path: Path) -> Path:
    """Archive two ranges, and return where their files are."""
    acme = books.make_organization(1_000, sandbox_balance=100)
    books.make_users(ANN, BOB)
    for last_id in (SIZE, 2 * SIZE):
        books.issue_now(acme, [ANN, BOB], 10)
        taken_back = books.queue_batch(acme, [ANN, BOB], [3, 4])
        books.drain_all(acme)
        books.reverse_now(acme, batch_id=taken_back, amount=2)
        books.issue_now(acme, [ANN, BOB], 5, sandbox=True)
        books.issue_now(acme, [ANN, BOB], 900)
        archiving.draw_ids_to(last_id)
    finish()
    assert len(archive(tmp_path)["archived"]) == 2
    return tmp_path


def _audit(directory: Path) -> tuple[int, list[dict[str, Any]], str]:
    """Give the command; return its exit status, what is wrong with the files, and what it says."""
    assert audit_command.callback is not None
    answer = unwrap(audit_command.callback)(directory=directory)
    assert answer._document["balanced"], "the books need no file"
    faults: list[dict[str, Any]] = answer._document["archive"]["faults"]
    for fault in faults:
        assert f"{fault['file']}: {fault['seen']}." in answer._sentence
    return answer.exit_status, faults, answer._sentence


def test_the_audit_proves_the_files_and_names_each_that_differs(directory: Path) -> None:
    status, faults, sentence = _audit(directory)
    assert (status, faults) == (0, [])
    assert sentence.endswith("The archive is whole: 2 ranges with 16 transactions.")
    paths = [directory / f"{name}.{kind}" for name in _NAMES for kind in ("transactions.parquet", "batches.parquet")]
    for path in paths:
        was = path.read_bytes()
        noted = sha256(was).hexdigest()
        path.write_bytes(was[:-9] + bytes([was[-9] ^ 1]) + was[-8:])
        changed = sha256(path.read_bytes()).hexdigest()
        seen = f"its SHA-256 is {changed}, but {noted} was noted"
        assert _audit(directory)[:2] == (1, [{"file": path.name, "seen": seen}])
        path.unlink()
        assert _audit(directory)[:2] == (1, [{"file": path.name, "seen": f"it is not in {directory}"}])
        path.write_bytes(was)
    one, other = paths[0].read_bytes(), paths[2].read_bytes()
    paths[0].write_bytes(other)
    paths[2].write_bytes(one)
    status, faults, sentence = _audit(directory)
    assert [fault["file"] for fault in faults] == [paths[0].name, paths[2].name]
    assert [fault["seen"].rpartition(": it is a file of ")[2] for fault in faults] == _NAMES[::-1]
    assert sentence.endswith("The archive is not whole: 2 faults in 2 ranges with 16 transactions.")
    paths[0].write_bytes(one)
    paths[2].write_bytes(other)
    manifest = directory / f"{_NAMES[0]}.json"
    was = manifest.read_bytes()
    manifest.write_bytes(was.replace(b'"last_batch_id": 63', b'"last_batch_id": 62'))
    assert _audit(directory)[1] == [{"file": manifest.name, "seen": "last_batch_id is 62, but 63 was noted"}]
    manifest.unlink()
    assert _audit(directory)[1][0]["file"] == manifest.name
    manifest.write_bytes(was)
    assert _audit(directory)[0] == 0


@pytest.mark.parametrize(
    ("column", "value", "seen"),
    [
        ("amount", 4, "batch 2 has 2 transactions and 8 points debited, but its head 2 and 7"),
        ("position", 1, "batch 2 has at place 0 what is not its own"),
        ("points_left", 2, "organization 1, live: its rows come to "),
    ],
)
def test_a_file_with_a_right_digest_whose_rows_are_others_is_named(
    directory: Path, column: str, value: int, seen: str
) -> None:
    path = directory / f"{_NAMES[0]}.transactions.parquet"
    table = parquet.read_table(path)
    place = table.column("batch_id").to_pylist().index(2)
    values = table.column(column).to_pylist()
    values[place] = value
    at = table.schema.get_field_index(column)
    parquet.write_table(
        table.set_column(at, table.schema.field(at), pa.array(values, table.schema.field(at).type)), path
    )
    new, manifest = sha256(path.read_bytes()), directory / f"{_NAMES[0]}.json"
    with_digest = f"sha256 = '\\x{new.hexdigest()}'"
    books.execute(f"UPDATE archived_ranges SET {with_digest} WHERE first_batch_id = 0")
    was = next(line for line in manifest.read_text().splitlines() if "sha256" in line)
    manifest.write_text(manifest.read_text().replace(was, f'      "sha256": "{new.hexdigest()}"', 1))
    status, [fault], _ = _audit(directory)
    assert (status, fault["file"]) == (1, path.name)
    assert fault["seen"].startswith(seen)
