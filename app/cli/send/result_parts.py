"""The parts of a result file: the rows of one batch each. Each row ends with a checksum of its part and all before.

A file of an earlier version has no column of references. It is read and completed in its own form, and renewed before
new parts are added.
"""

import hashlib
import os
import shutil
from collections.abc import Iterator, Sequence
from itertools import groupby
from pathlib import Path
from typing import IO, Any, NamedTuple

from app.cli.send.result_rows import COLUMNS


class Form(NamedTuple):
    """The columns of a result file; the check is the last."""

    columns: Sequence[str]

    @property
    def heading(self) -> bytes:
        return ",".join(self.columns).encode() + b"\r\n"


CURRENT = Form(COLUMNS)
EARLIER = Form([name for name in COLUMNS if name != "reference"])


class CheckedPart(NamedTuple):
    """A part with a right check: its lines, the check, and where in the file it ends."""

    lines: list[bytes]
    check: str
    end: int


def form_of(path: Path) -> Form:
    """Return the form of a file, which may break off within the heading. A missing file has the current form."""
    if not path.exists():
        return CURRENT
    with path.open("rb") as file:
        begun = file.read(len(EARLIER.heading))
    return EARLIER if EARLIER.heading.startswith(begun) and not CURRENT.heading.startswith(begun) else CURRENT


def checked_parts(path: Path) -> Iterator[CheckedPart]:
    """Yield each part, up to the first one with a wrong check."""
    if not path.exists():
        return
    heading, check = form_of(path).heading, ""
    with path.open("rb") as file:
        if file.readline() != heading:
            return
        end = len(heading)
        for found, group in groupby(file, lambda line: line.rpartition(b",")[2]):
            lines = list(group)
            check = next_check(check, b"\n".join(line.rpartition(b",")[0] for line in lines))
            if found != f"{check}\r\n".encode():
                return
            end += sum(map(len, lines))
            yield CheckedPart(lines, check, end)


def next_check(before: str, rows: bytes) -> str:
    return hashlib.blake2b(before.encode() + rows, digest_size=8).hexdigest()


def renew(path: Path) -> None:
    """Rewrite a file of the earlier form in the current one. All its parts must have right checks."""
    target = path.resolve()
    draft, check = target.with_name(f"{target.name}.draft"), ""
    with draft.open("wb") as file:
        file.write(CURRENT.heading)
        for part in checked_parts(target):
            rows = [line.rpartition(b",")[0] + b"," for line in part.lines]  # The new cell, before the check, is empty.
            check = next_check(check, b"\n".join(rows))
            file.writelines(b"%s,%s\r\n" % (row, check.encode()) for row in rows)
        sync(file)
    shutil.copymode(target, draft)
    draft.replace(target)
    sync_folder(target.parent)


def sync(file: IO[Any]) -> None:
    file.flush()
    os.fsync(file.fileno())


def sync_folder(path: Path) -> None:
    """Flush a folder, so that a new file's name is on the disk."""
    folder = os.open(path, os.O_RDONLY)
    try:
        os.fsync(folder)
    finally:
        os.close(folder)
