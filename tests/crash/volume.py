"""The disk of the servers' data: a small one of its own where the system lets us have it, so that it can be full."""

import os
import shutil
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

_FILLER = "filler"


class Volume:
    """A folder that is a file system of its own if we may mount one, else a plain folder."""

    def __init__(self, path: Path, *, size_mb: int) -> None:
        self.path = path
        self._size_mb = size_mb
        self.is_mounted = False

    def mount(self) -> None:
        self.path.mkdir(parents=True, exist_ok=True)
        if os.geteuid() != 0 or sys.platform != "linux" or not shutil.which("mount"):
            return
        options = f"size={self._size_mb}m,mode=0755"
        done = subprocess.run(
            [_program("mount"), "-t", "tmpfs", "-o", options, "tmpfs", str(self.path)], capture_output=True, check=False
        )
        self.is_mounted = done.returncode == 0

    @contextmanager
    def full(self) -> Iterator[None]:
        """Leave no room until the block ends."""
        self._fill()
        try:
            yield
        finally:
            (self.path / _FILLER).unlink(missing_ok=True)

    def _fill(self) -> None:
        """Leave not one byte free."""
        assert self.is_mounted, "only a file system of our own is ever filled"
        chunk = bytes(1 << 20)
        with (self.path / _FILLER).open("wb", buffering=0) as filler:
            try:
                while filler.write(chunk) > 0:
                    pass
            except OSError:
                return

    def remove(self) -> None:
        """Give back the room that it takes."""
        self.unmount()
        shutil.rmtree(self.path, ignore_errors=True)

    def unmount(self) -> None:
        if self.is_mounted:
            # Lazily: a process that was killed a moment ago may still hold a file open.
            subprocess.run([_program("umount"), "--lazy", str(self.path)], check=False, capture_output=True)
            self.is_mounted = False


def _program(name: str) -> str:
    path = shutil.which(name)
    assert path is not None, "whoever can mount can unmount"
    return path
