"""Archives in children that kill themselves: `python -m tests.integration.killed_archive DIRECTORY`.

For each line of input, the name of a place, a child goes on with the archive until it comes there. A line of output
tells what became of it: `killed`, or `ended`.
"""

import os
import signal
import subprocess
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from app.archive import dropping, files, ranges, rewriting, run, writing
from app.archive.alone import ArchiveRuns
from tests.deadline import until
from tests.integration import archiving

# Where a child is killed: before a function, as it is looked up there, is called for this many times.
BEFORE: dict[str, tuple[Any, str, int]] = {
    "the range is closed": (ranges, "close", 1),
    "the wait for what began before": (run, "has_all_ended", 1),
    "the second look": (ranges, "why_not", 1),
    "rows are written": (files, "typed", 1),
    "the first file has its name": (Path, "replace", 1),
    "the second file has its name": (Path, "replace", 2),
    "the files are compared": (writing, "_compare", 1),
    "the comparison is noted": (ranges, "note_compared", 1),
    "the manifest is written": (files, "write_manifest", 1),
    "the manifest has its name": (Path, "replace", 3),
    "the range is committed as compared": (ranges, "get", 4),
    "the files are looked at again": (writing, "are_whole", 1),
    "the range is archived": (ranges, "note_archived", 1),
    "the rows are left": (dropping, "is_there", 1),
    "the partition is detached": (dropping, "detach", 1),
    "the partition is dropped": (dropping, "drop", 1),
    "batches are emptied": (dropping, "empty_batches", 1),
    "the second batch is emptied": (dropping, "transaction", 2),
    "the range is noted as emptied": (ranges, "note_emptied", 1),
}
# And where it writes files anew, without erased users.
BEFORE_ERASED: dict[str, tuple[Any, str, int]] = {
    "the copy of the heads has its name": (Path, "replace", 1),
    "rows are written anew": (rewriting, "_without", 2),
    "the new file has its name": (Path, "replace", 2),
    "the new file is read back": (rewriting, "_require_the_same", 1),
    "the new manifest has its name": (Path, "replace", 3),
    "the range is switched": (rewriting, "_switch", 1),
    "the old files are removed": (rewriting, "_remove_older", 1),
    "the second old file is removed": (Path, "unlink", 6),
}
PLACES = BEFORE | BEFORE_ERASED


def _die_before(owner: Any, name: str, count: int) -> None:
    function, left = getattr(owner, name), count

    def planted(*arguments: Any, **named: Any) -> Any:
        nonlocal left
        left -= 1
        if not left:
            os.kill(os.getpid(), signal.SIGKILL)
        return function(*arguments, **named)

    setattr(owner, name, planted)


def _goes_on(directory: Path) -> bool:
    """Archive; False while PostgreSQL has not noticed yet that the last child is gone."""
    try:
        archiving.archive(directory)
    except ArchiveRuns:
        return False
    return True


@contextmanager
def children(directory: Path) -> Iterator[Callable[[str], str]]:
    """Start the process whose children archive, and yield what has one go on to a place and tells its end."""
    command = [sys.executable, "-m", "tests.integration.killed_archive", str(directory)]
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as parent:
        asked, told = parent.stdin, parent.stdout
        assert asked is not None
        assert told is not None

        def go_on(place: str) -> str:
            asked.write(f"{place}\n")
            asked.flush()
            return told.readline().strip()

        yield go_on
        asked.close()


def main() -> None:
    dropping._STEP = 1
    for line in sys.stdin:
        child = os.fork()
        if not child:
            if line.strip() in PLACES:
                _die_before(*PLACES[line.strip()])
            until(lambda: _goes_on(Path(sys.argv[1])))
            os._exit(0)
        _, status = os.waitpid(child, 0)
        print("killed" if os.WIFSIGNALED(status) else f"ended {status}", flush=True)


if __name__ == "__main__":
    main()
