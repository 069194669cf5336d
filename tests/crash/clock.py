"""The clock of one process and its children, set by libfaketime, which they are started with."""

import os
import subprocess
import sys
from functools import lru_cache
from importlib.util import find_spec
from pathlib import Path

_A_DAY_S = 86_400


class Clock:
    """A file that says how many seconds off the clock is. Each process looks at it every two seconds."""

    def __init__(self, file: Path) -> None:
        self._file = file

    def environment(self) -> dict[str, str]:
        """Return the variables with which a process is started whose clock this is."""
        return {
            "LD_PRELOAD": str(_library()),
            "FAKETIME_TIMESTAMP_FILE": str(self._file),
            "FAKETIME_CACHE_DURATION": "1",
            # What measures how long something takes, and the times of files, stay as they are.
            "FAKETIME_DONT_FAKE_MONOTONIC": "1",
            "NO_FAKE_STAT": "1",
        }

    def set(self, off_s: int) -> None:
        draft = self._file.with_suffix(".draft")
        draft.write_text(f"{off_s:+d}\n")
        draft.chmod(0o644)
        draft.replace(self._file)


@lru_cache(maxsize=1)
def can_be_set() -> bool:
    """Tell whether libfaketime is there, and made for this system."""
    library = _library()
    if library is None:
        return False
    environment = {**os.environ, "LD_PRELOAD": str(library), "FAKETIME": f"+{_A_DAY_S}"}
    told = [sys.executable, "-c", "import time; print(int(time.time()))"]
    there, here = (
        subprocess.run(told, env=its_own, capture_output=True, text=True, check=True).stdout
        for its_own in (environment, os.environ)
    )
    return int(there) - int(here) > _A_DAY_S / 2


def _library() -> Path | None:
    package = find_spec("libfaketime")
    if package is None or package.origin is None:
        return None
    library = Path(package.origin).parent / "vendor/libfaketime/src/libfaketime.so.1"
    return library if library.exists() else None
