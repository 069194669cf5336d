"""The lines of the Procfile, run with stand-ins for its programs that print the words they were given."""

import os
import subprocess
from pathlib import Path

from tests.unit.deployment.files import SHELL, procfile


def run_line(line: str, folder: Path, **environment: str) -> subprocess.CompletedProcess[str]:
    """Run a line of the Procfile with stand-ins for its programs, which print the words they were given."""
    for program in ("gunicorn", "celery", "points"):
        stand_in = folder / program
        stand_in.write_text('#!/bin/sh\nprintf "%s\\n" "${0##*/}" "$@"\n')
        stand_in.chmod(0o755)
    path = f"{folder}:{os.environ['PATH']}"
    return subprocess.run(
        [SHELL, "-c", procfile()[line]],
        env={"PATH": path, "TMPDIR": str(folder), **environment},
        capture_output=True,
        text=True,
        check=False,
    )


def words_of_line(line: str, folder: Path, **environment: str) -> list[str]:
    """Return the words of a line of the Procfile after its shell has expanded them."""
    finished = run_line(line, folder, **environment)
    assert finished.returncode == 0, finished.stderr
    return finished.stdout.splitlines()
