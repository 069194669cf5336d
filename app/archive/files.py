"""The files of a range: two in Parquet, and a manifest. Each is written whole beside its place, and then put there."""

import os
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from hashlib import file_digest
from pathlib import Path
from typing import Any

import orjson
from pyarrow import parquet

from app.archive.columns import Source, as_csv, typed
from app.archive.columns import digest_of as digest_of_csv

_ROWS_AT_ONCE = 65_536


def transactions_path(directory: Path, name: str) -> Path:
    return directory / f"{name}.transactions.parquet"


def batches_path(directory: Path, name: str) -> Path:
    return directory / f"{name}.batches.parquet"


def manifest_path(directory: Path, name: str) -> Path:
    return directory / f"{name}.json"


@contextmanager
def put_whole(path: Path) -> Iterator[Path]:
    """Yield a path to write to; then it takes the place of `path`, also if the machine is switched off meanwhile."""
    part = path.with_name(f"{path.name}.{os.getpid()}.part")
    try:
        yield part
        with part.open("rb") as written:
            os.fsync(written.fileno())
        part.replace(path)
    finally:
        part.unlink(missing_ok=True)
    sync_names(path.parent)


def sync_names(directory: Path) -> None:
    """Have the names in a directory outlive the machine being switched off."""
    folder = os.open(directory, os.O_RDONLY)
    try:
        os.fsync(folder)
    finally:
        os.close(folder)


def remove_parts(directory: Path, name: str) -> None:
    """Remove what a run that was killed had begun to write."""
    for part in directory.glob(f"{name}.*.part"):
        part.unlink(missing_ok=True)


def write(path: Path, source: Source, pieces: Iterable[bytes]) -> None:
    """Write CSV as a Parquet file."""
    with put_whole(path) as part, parquet.ParquetWriter(part, source.schema, compression="zstd") as file:
        for piece in pieces:
            file.write_table(typed(source, piece))


def record_batches(path: Path, columns: list[str] | None = None) -> Iterator[Any]:
    """Yield the rows of a Parquet file, a bounded number at a time."""
    with _opened(path) as file:
        yield from file.iter_batches(batch_size=_ROWS_AT_ONCE, columns=columns)


def rows_in(path: Path) -> int:
    with _opened(path) as file:
        rows: int = file.metadata.num_rows
        return rows


def csv_digest(source: Source, path: Path) -> str:
    """Return the SHA-256 of a Parquet file's rows as PostgreSQL would write them in CSV."""
    return digest_of_csv(as_csv(source, record_batches(path)))


def digest_of(path: Path) -> bytes | None:
    """Return the SHA-256 of a file; None if it is not there."""
    try:
        with path.open("rb") as file:
            return file_digest(file, "sha256").digest()
    except FileNotFoundError:
        return None


def write_manifest(directory: Path, name: str, manifest: dict[str, Any]) -> None:
    with put_whole(manifest_path(directory, name)) as part:
        part.write_bytes(orjson.dumps(manifest, option=orjson.OPT_INDENT_2 | orjson.OPT_APPEND_NEWLINE))


def read_manifest(directory: Path, name: str) -> dict[str, Any] | None:
    """Return a manifest; None if it is not there, or is none."""
    try:
        found = orjson.loads(manifest_path(directory, name).read_bytes())
    except (FileNotFoundError, orjson.JSONDecodeError):
        return None
    return found if isinstance(found, dict) else None


@contextmanager
def _opened(path: Path) -> Iterator[Any]:
    with parquet.ParquetFile(path, pre_buffer=False) as file:
        yield file
