"""Writing a file of the archive anew, without the addresses of users who were erased since.

The new file gets a name of its own. The range is switched to it in one transaction, then the old one is deleted, and
what was asked for is noted as done last: killed at any moment, the next run does again what is left.
"""

import shutil
from collections.abc import Mapping, Sequence
from datetime import UTC, datetime
from hashlib import sha256
from pathlib import Path
from typing import Any, NamedTuple

import pyarrow as pa
from pyarrow import compute, parquet
from sqlalchemy import Connection, text

from app.archive import files, ranges
from app.archive.ranges import Range
from app.archive.writing import are_whole, manifest_of, paths
from app.postgres.database import transaction
from app.values.numbers import counted
from app.values.timestamps import timestamp

_ADDRESSES = ("email", "email_key")
# In a manifest: the digests that its transactions had under the names before.
_INSTEAD_OF = "instead_of"


class _Erased(NamedTuple):
    """Users who were erased: their ids, and by the hash of an address whose it was, up to which batch."""

    user_ids: Sequence[int]
    of_address: Mapping[bytes, Sequence[tuple[int, int]]]

    @property
    def ids(self) -> Any:
        """The ids of the users, to look many up at once."""
        return pa.array(self.user_ids, pa.int64())

    def name(self, batch_id: int, user_id: int | None, address: str) -> str | None:
        """Return what stands in the place of an address; None if it is not theirs (app/erasing/issued.py)."""
        if user_id is not None:
            return f"erased-{user_id}" if user_id in self.user_ids else None
        known = self.of_address.get(sha256(address.encode()).digest(), ())
        return next((f"erased-{whose}" for whose, last in known if last >= batch_id), None)


def wanted(directory: Path) -> list[Range]:
    """Return the ranges whose files hold users who were erased since they were compared, perhaps."""
    with transaction() as connection:
        asked_for = set(connection.execute(_ASKED_FOR).scalars())
        compared = [one for one in ranges.closed(connection) if one.sha256 is not None]
    newest = [_take_up(one, directory) for one in compared]
    return [one for one in newest if one.first in asked_for]


_ASKED_FOR = text("SELECT first_batch_id FROM archived_erasures")


def _take_up(known: Range, directory: Path) -> Range:
    """Switch a range to the files that were written anew of those that a restored database still names."""
    assert known.sha256 is not None, "it was compared"
    if paths(known, directory)[0].exists():
        return known
    for path in directory.glob(f"{known.name}.*.json"):
        newer = known._replace(file=path.name.removesuffix(".json"))
        said = files.read_manifest(directory, newer.stem) or {}
        if known.sha256.hex() in said.get(_INSTEAD_OF, ()):
            newer = newer._replace(sha256=bytes.fromhex(said["files"][0]["sha256"]))
            if are_whole(newer, directory):
                with transaction() as connection:
                    _switch(connection, newer)
                return newer
    return known


def rewrite(known: Range, directory: Path) -> str | None:
    """Take the addresses of all erased users out of the files of a range; return why that waits, None once it is so."""
    with transaction() as connection:
        rows = connection.execute(_ERASED, {"first": known.first}).all()
    users = [row.user_id for row in rows]
    if not are_whole(known, directory):
        return f"its files are not whole in {directory}, and {counted(len(users), 'erased user')} may be in them"
    of_address: dict[bytes, list[tuple[int, int]]] = {}
    for row in rows:
        for address_hash, last_batch_id in zip(row.address_hashes, row.last_batch_ids, strict=True):
            of_address.setdefault(bytes(address_hash), []).append((row.user_id, last_batch_id))
    erased = _Erased(users, of_address)
    if _holds(paths(known, directory)[0], erased):
        known = _write_anew(known, directory, erased)
    _remove_older(known, directory)
    with transaction() as connection:
        connection.execute(_DONE, {"first": known.first, "user_ids": users})
    return None


_ERASED = text("""
    SELECT user_id, address_hashes, last_batch_ids FROM archived_erasures WHERE first_batch_id = :first ORDER BY user_id
""")
_DONE = text("DELETE FROM archived_erasures WHERE first_batch_id = :first AND user_id = ANY(:user_ids)")


def _holds(path: Path, erased: _Erased) -> bool:
    """Tell whether a file has an address of theirs."""
    pieces = files.record_batches(path, ["batch_id", "user_id", *_ADDRESSES])
    return any(_without(pa.Table.from_batches([piece]), erased) is not None for piece in pieces)


def _without(rows: Any, erased: _Erased) -> Any | None:
    """Return rows of transactions without the addresses of theirs; None if there is none."""
    of_users = rows.column("user_id")
    may_be_theirs = compute.or_(compute.is_null(of_users), compute.is_in(of_users, erased.ids))
    if not compute.any(may_be_theirs).as_py():
        return None
    emails, keys = (rows.column(name).to_pylist() for name in _ADDRESSES)
    batch_ids, user_ids = (rows.column(name).to_pylist() for name in ("batch_id", "user_id"))
    has_one = False
    for place, (batch_id, user_id, email, key) in enumerate(zip(batch_ids, user_ids, emails, keys, strict=True)):
        name = erased.name(batch_id, user_id, email if key is None else key)
        if name not in (None, email):
            emails[place], keys[place], has_one = name, None, True
    if not has_one:
        return None
    for name, values in zip(_ADDRESSES, (emails, keys), strict=True):
        at = rows.schema.get_field_index(name)
        rows = rows.set_column(at, rows.schema.field(at), pa.array(values, rows.schema.field(at).type))
    return rows


def _write_anew(known: Range, directory: Path, erased: _Erased) -> Range:
    """Write the files of a range under a new name, and switch the range to them."""
    new = known._replace(file=f"{known.name}.{_number(known) + 1}")
    (old_rows, old_heads), (rows, heads) = paths(known, directory), paths(new, directory)
    with files.put_whole(heads) as part:  # The heads have no address.
        shutil.copyfile(old_heads, part)
    with (
        files.put_whole(rows) as part,
        parquet.ParquetFile(old_rows, pre_buffer=False) as old,
        parquet.ParquetWriter(part, old.schema_arrow, compression="zstd") as writer,
    ):
        for number in range(old.num_row_groups):
            group = old.read_row_group(number)
            changed = _without(group, erased)
            writer.write_table(group if changed is None else changed, row_group_size=max(1, group.num_rows))
    _require_the_same(old_rows, rows)
    manifest = files.read_manifest(directory, known.stem)
    assert manifest is not None, "it was whole"
    new = new._replace(sha256=files.digest_of(rows))
    assert known.sha256 is not None, "it was compared"
    before = {_INSTEAD_OF: [*manifest.get(_INSTEAD_OF, ()), known.sha256.hex()], "schema": manifest["schema"]}
    with transaction() as connection:
        said = manifest_of(connection, new, directory) | before
        files.write_manifest(directory, new.stem, said | {"written_at": timestamp(datetime.now(UTC))})
        _switch(connection, new)
    return new


def _switch(connection: Connection, new: Range) -> None:
    connection.execute(_SWITCH, {"first": new.first, "file": new.file, "sha256": new.sha256})


_SWITCH = text("UPDATE archived_ranges SET file = :file, sha256 = :sha256 WHERE first_batch_id = :first")


def _require_the_same(old_path: Path, path: Path) -> None:
    """Check that a file, read back, differs from the old one in addresses alone."""
    with parquet.ParquetFile(old_path, pre_buffer=False) as old, parquet.ParquetFile(path, pre_buffer=False) as new:
        names = [name for name in old.schema_arrow.names if name not in _ADDRESSES]
        same = old.num_row_groups == new.num_row_groups and all(
            old.read_row_group(number, columns=names).equals(new.read_row_group(number, columns=names))
            for number in range(old.num_row_groups)
        )
    if not same:
        raise OSError(f"{path.name} does not hold what was written to it")


def _number(known: Range) -> int:
    """Return how often its files were written anew."""
    return int(known.stem.removeprefix(known.name).removeprefix(".") or 0)


def _remove_older(known: Range, directory: Path) -> None:
    """Remove the files under the names that the range had before, for good."""
    files.remove_parts(directory, known.name)
    for number in range(_number(known)):
        older = known._replace(file=f"{known.name}.{number}" if number else known.name)
        for path in (*paths(older, directory), files.manifest_path(directory, older.stem)):
            path.unlink(missing_ok=True)
    files.sync_names(directory)
