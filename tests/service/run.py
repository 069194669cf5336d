"""What all processes of one run of the tests have in common: a folder, and locks in it."""

import contextlib
import fcntl
import re
from collections.abc import Iterator
from pathlib import Path


def of_the_run(below: Path, name: str) -> Path:
    """Return a path that all processes of a run have in common; `below` is any of pytest's."""
    run = next(folder for folder in (below, *below.parents) if re.fullmatch(r"pytest-\d+", folder.name))
    return run / name


@contextlib.contextmanager
def alone(folder: Path, name: str) -> Iterator[None]:
    """Wait until no other process is in such a block. A lock is given back by whoever dies."""
    with (folder / f"{name}.lock").open("a") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        yield
