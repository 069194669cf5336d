"""The files through which gunicorn's processes add up: `prometheus_client`'s multi-process mode, in slots.

Each web process writes its counts into files of its own, and whichever answers `/metrics` adds them
all up. A file must outlive its process, or a sum would fall; named by process ids they would pile up.
So each is named by a slot, and who takes the place of a dead process takes over its slot and counts on.
"""

import contextlib
import fcntl
import itertools
import os
import shutil
import tempfile
from pathlib import Path
from typing import IO

from prometheus_client import multiprocess, values

_PREFIX = "points-metrics-"
_LOCK = "lock"
# Under this name `prometheus_client` looks for the directory.
_VARIABLE = "PROMETHEUS_MULTIPROC_DIR"

_slot = "none"
_held: list[IO[str]] = []  # Files kept open for their locks, which end with the process.


def share() -> None:
    """Make the directory; call it in gunicorn's master, before a metric has its first value.

    What a killed master has left is removed. The lock tells: a child inherits it, so a directory is
    free only when the last process that used it is gone.
    """
    base = Path(tempfile.gettempdir())
    for path in base.glob(f"{_PREFIX}*"):
        _remove_if_abandoned(path)
    directory = Path(tempfile.mkdtemp(prefix=_PREFIX, dir=base))
    draft = (directory / f"{_LOCK}.new").open("w")
    fcntl.flock(draft, fcntl.LOCK_EX)
    (directory / f"{_LOCK}.new").rename(directory / _LOCK)  # Nobody sees a lock that is not held yet.
    _held.append(draft)
    # What cleans temporary folders of old files passes over one that is locked itself.
    fcntl.flock(os.open(directory, os.O_RDONLY), fcntl.LOCK_SH)
    os.environ[_VARIABLE] = str(directory)
    values.ValueClass = values.MultiProcessValue(lambda: _slot)  # type: ignore[no-untyped-call]


def directory() -> Path | None:
    """Return the directory that the processes share, or None in a process that stands alone, as in a test."""
    name = os.environ.get(_VARIABLE)
    return None if name is None else Path(name)


def take_slot() -> None:
    """Take the first free slot; call it in each web process after its fork."""
    global _slot  # noqa: PLW0603  # A process has one.
    shared = directory()
    assert shared is not None, "the master has made it"
    for number in itertools.count():
        file = (shared / f"slot-{number}").open("a+")
        try:
            fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            file.close()
            continue
        file.truncate(0)
        file.write(str(os.getpid()))
        file.flush()
        _held.append(file)
        _slot = str(number)
        return


def forget(pid: int) -> None:
    """Drop what a dead process said about itself (its gauges); what it has counted stays."""
    shared = directory()
    for file in [] if shared is None else shared.glob("slot-*"):
        if file.read_text() == str(pid):
            multiprocess.mark_process_dead(file.name.removeprefix("slot-"))  # type: ignore[no-untyped-call]


def remove() -> None:
    """Remove the directory; call it when the master ends."""
    shared = directory()
    if shared is not None:
        shutil.rmtree(shared, ignore_errors=True)


def _remove_if_abandoned(path: Path) -> None:
    with contextlib.suppress(OSError):  # Another user's, or another start has been faster.
        if path.is_symlink() or path.stat().st_uid != os.geteuid():
            return
        with (path / _LOCK).open("r+") as lock:
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
            shutil.rmtree(path)
