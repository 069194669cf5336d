"""Writing the files of a range, reading them back, and comparing both with the rows."""

from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pyarrow as pa
from sqlalchemy import Connection, text

from app.archive import closing, columns, files, ranges
from app.archive.columns import Source
from app.archive.ranges import Range
from app.archive.waiting import without_limit
from app.errors import Refused
from app.postgres.database import transaction
from app.values.timestamps import timestamp

# Erasures may rewrite rows meanwhile; then the files are written again.
_TRIES_MAX = 5
# What the manifest is written as; another number is another form.
_FORM = 1


def write_and_compare(closed: Range, directory: Path) -> Range:
    """Write the files of a closed range and compare them; return the range with their digests.

    Raises:
        Refused: what is read back is not what the database has.
    """
    for _ in range(_TRIES_MAX):
        files.remove_parts(directory, closed.name)
        with transaction() as connection:
            without_limit(connection)
            closed = ranges.get(connection, closed.first)
            sources = columns.transactions(connection), columns.batches(connection)
            for path, source in zip(paths(closed, directory), sources, strict=True):
                files.write(path, source, columns.read(connection, source, closed.first, closed.end))
        with transaction() as connection:
            without_limit(connection)
            if _compare(connection, closed, directory, sources):
                return ranges.get(connection, closed.first)
    raise Refused(
        f"The files {closed.name} in {directory} do not hold what the database has, even after {_TRIES_MAX} tries."
        " Nothing was dropped. Look at the disk, then give the command again."
    )


def paths(closed: Range, directory: Path) -> tuple[Path, Path]:
    """Return where the files of a range are: its transactions, and the heads of its batches."""
    return files.transactions_path(directory, closed.stem), files.batches_path(directory, closed.stem)


def _compare(connection: Connection, closed: Range, directory: Path, sources: tuple[Source, Source]) -> bool:
    """Read both files back, and note that they hold the rows as these are now; False if they do not."""
    digests: list[bytes] = []
    for path, source in zip(paths(closed, directory), sources, strict=True):
        digest = files.digest_of(path)
        if digest is None or not _is_in(connection, closed, source, path):
            return False
        digests.append(digest)
    rows = files.rows_in(paths(closed, directory)[0])
    if not ranges.note_compared(connection, closed, rows=rows, digests=(digests[0], digests[1])):
        return False
    closing.write_sums(connection, closed)
    manifest = manifest_of(connection, ranges.get(connection, closed.first), directory)
    assert rows == sum(one["transactions"] for one in manifest["sums"]), "the files have each row, and so have the sums"
    files.write_manifest(directory, closed.name, manifest | {"written_at": timestamp(datetime.now(UTC))})
    return True


def _is_in(connection: Connection, closed: Range, source: Source, path: Path) -> bool:
    """Tell whether a file, read back from the disk, has each row of the database as it is now."""
    try:
        found = files.csv_digest(source, path)
    except (pa.ArrowException, OSError):  # What cannot be read back is damaged.
        return False
    return found == columns.digest_of(columns.read(connection, source, closed.first, closed.end))


def manifest_of(connection: Connection, compared: Range, directory: Path) -> dict[str, Any]:
    """Return what the manifest of a compared range says, but for when it was written."""
    assert compared.sha256 is not None and compared.batches_sha256 is not None, "it was compared"  # noqa: PT018
    schema: str = connection.execute(text("SELECT version_num FROM alembic_version")).scalar_one()
    return {
        "form": _FORM,
        "schema": schema,
        "first_batch_id": compared.first,
        "last_batch_id": compared.end - 1,
        "files": [
            {"name": path.name, "rows": files.rows_in(path), "sha256": digest.hex()}
            for path, digest in zip(paths(compared, directory), (compared.sha256, compared.batches_sha256), strict=True)
        ],
        "sums": closing.sums_of_modes(connection, compared.first),
    }


def are_whole(closed: Range, directory: Path) -> bool:
    """Tell whether the manifest and both files of a range are there, with the digests that were noted."""
    found = tuple(files.digest_of(path) for path in paths(closed, directory))
    return files.read_manifest(directory, closed.stem) is not None and found == (closed.sha256, closed.batches_sha256)
