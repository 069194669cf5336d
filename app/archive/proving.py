"""Proving the files of the archive: each is what was noted of it, and what it holds comes to the closing sums."""

from collections.abc import Iterator
from dataclasses import dataclass, field
from itertools import groupby, zip_longest
from operator import itemgetter
from pathlib import Path
from typing import Any

import pyarrow as pa

from app.archive import closing, files, ranges
from app.archive.ranges import Range
from app.archive.writing import manifest_of, paths
from app.postgres.database import transaction

_BATCH = ["id", "organization_id", "sandbox", "amount", "recipient_count", "debited_amount"]
_TRANSACTION = ["batch_id", "position", "organization_id", "sandbox", "amount", "debited", "credited", "points_left"]
# The database may have another schema since.
_NOT_COMPARED = ("schema",)

# The sums of an organization and mode, by their names.
_Sums = dict[tuple[int, bool], dict[str, int]]


@dataclass(frozen=True, kw_only=True, slots=True)
class Fault:
    """A file of the archive, and how it differs from what it should be."""

    file: str
    seen: str


@dataclass(frozen=True, kw_only=True, slots=True)
class Proof:
    """What was read of the archive, and what is wrong with its files."""

    ranges: int
    transactions: int
    faults: list[Fault] = field(default_factory=list)


def prove(directory: Path) -> Proof:
    """Read all files of the archive, and compare them with what the database has noted of them."""
    with transaction() as connection:
        known = [one for one in ranges.closed(connection) if one.is_archived]
    faults: list[Fault] = []
    for one in known:
        faults += _faults_of(one, directory, known)
    return Proof(ranges=len(known), transactions=sum(one.transactions or 0 for one in known), faults=faults)


def _faults_of(known: Range, directory: Path, all_of_them: list[Range]) -> list[Fault]:
    """Prove the files of a range; anew, if they were written anew meanwhile."""
    while True:
        faults = list(_digests(known, directory, all_of_them))
        faults = faults or [*_manifest(known, directory), *_content(known, directory)]
        with transaction() as connection:
            now = ranges.get(connection, known.first)
        if not faults or not now.is_archived or now.sha256 == known.sha256:
            return faults
        known = now


def _digests(known: Range, directory: Path, all_of_them: list[Range]) -> Iterator[Fault]:
    others = {digest: one.file for one in all_of_them for digest in (one.sha256, one.batches_sha256)}
    for path, noted in zip(paths(known, directory), (known.sha256, known.batches_sha256), strict=True):
        assert noted is not None, "it is archived"
        found = files.digest_of(path)
        if found is None:
            yield Fault(file=path.name, seen=f"it is not in {directory}")
        elif found != noted:
            other = f": it is a file of {others[found]}" if found in others else ""
            yield Fault(file=path.name, seen=f"its SHA-256 is {found.hex()}, but {noted.hex()} was noted{other}")


def _manifest(known: Range, directory: Path) -> Iterator[Fault]:
    name = files.manifest_path(directory, known.stem).name
    found = files.read_manifest(directory, known.stem)
    if found is None:
        yield Fault(file=name, seen=f"it is not in {directory}, or is no manifest")
        return
    with transaction() as connection:
        noted = manifest_of(connection, known, directory)
    for what, value in noted.items():
        if what not in _NOT_COMPARED and found.get(what) != value:
            yield Fault(file=name, seen=f"{what} is {found.get(what)}, but {value} was noted")


class _Differs(Exception):
    """What a file holds is not what it should; the message says what."""


def _content(known: Range, directory: Path) -> Iterator[Fault]:
    """Read each row, and compare the sums of them with the closing ones."""
    path, batches_path = paths(known, directory)
    try:
        found = _sums(known, path, batches_path)
    except _Differs as error:
        yield Fault(file=path.name, seen=str(error))
        return
    except (pa.ArrowException, OSError) as error:
        yield Fault(file=path.name, seen=f"it cannot be read: {type(error).__name__}")
        return
    with transaction() as connection:
        rows = closing.sums_of_modes(connection, known.first)
    noted: _Sums = {
        (row["organization_id"], row["sandbox"]): {name: int(row[name]) for name in closing.SUMS} for row in rows
    }
    for mode in sorted(found.keys() | noted.keys()):
        if found.get(mode) != noted.get(mode):
            whose = f"organization {mode[0]}, {'sandbox' if mode[1] else 'live'}"
            yield Fault(file=path.name, seen=f"{whose}: its rows come to {found.get(mode)}, not to {noted.get(mode)}")


def _sums(known: Range, path: Path, batches_path: Path) -> _Sums:
    """Sum up the transactions of a range, batch by batch.

    Raises:
        _Differs: a batch does not have its recipients, in order, and its debits.
    """
    sums: _Sums = {}
    transactions = groupby(_rows(path, _TRANSACTION), key=itemgetter(0))
    for batch, of_batch in zip_longest(_rows(batches_path, _BATCH), transactions):
        if batch is None or of_batch is None or batch[0] != of_batch[0]:
            raise _Differs(f"beside batch {batch and batch[0]} of the heads it has batch {of_batch and of_batch[0]}")
        batch_id, organization_id, sandbox, amount, recipients, debited = batch
        if not known.first <= batch_id < known.end:
            raise _Differs(f"batch {batch_id} is not in its range")
        mode = sums.setdefault((organization_id, sandbox), dict.fromkeys(closing.SUMS, 0))
        before, count = mode["debited"], 0
        for count, row in enumerate(of_batch[1], 1):
            if row[1:4] != (count - 1, organization_id, sandbox):
                raise _Differs(f"batch {batch_id} has at place {count - 1} what is not its own")
            _add(mode, row, amount)
        if (count, mode["debited"] - before) != (recipients, debited):
            raise _Differs(
                f"batch {batch_id} has {count} transactions and {mode['debited'] - before} points debited, but its head"
                f" {recipients} and {debited}"
            )
    return sums


def _add(mode: dict[str, int], row: tuple[Any, ...], of_batch: int | None) -> None:
    *_, own, debited, credited, points_left = row
    amount: int | None = of_batch if own is None else own
    assert amount is not None, "a batch has one, or each of its items"
    left = amount if points_left is None else points_left
    mode["transactions"] += 1
    mode["credits"] += credited
    mode["debited"] += amount if debited else 0
    mode["credited"] += left if credited else 0
    mode["taken_back"] += amount - left if debited else 0


def _rows(path: Path, columns: list[str]) -> Iterator[tuple[Any, ...]]:
    for piece in files.record_batches(path, columns):
        yield from zip(*(piece.column(name).to_pylist() for name in columns), strict=True)
