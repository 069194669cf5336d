"""The heart of the contract on each older PostgreSQL that the service promises to work with, if it is installed.

All of it on one: `TEST_POSTGRESQL=/usr/lib/postgresql/15/bin python -m pytest tests/contract`.
"""

import os
import subprocess
import sys
from pathlib import Path

import pytest

_FOLDER = Path(__file__).parent
_FILES = [str(_FOLDER / f"test_{name}.py") for name in ("verify", "send", "books", "held", "retries", "may_not_issue")]


@pytest.mark.long
@pytest.mark.skipif("TEST_POSTGRESQL" in os.environ, reason="this whole run is on another PostgreSQL already")
@pytest.mark.parametrize("version", [15, 16, 17])
def test_verify_send_and_the_books_keep_their_promises_on_postgresql(version: int) -> None:
    programs = Path(f"/usr/lib/postgresql/{version}/bin")  # Where Debian has them.
    if not (programs / "postgres").exists():
        pytest.skip(f"no PostgreSQL {version} is installed here (Debian: apt-get install postgresql-{version})")
    command = [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", *_FILES]
    environment = os.environ | {"TEST_POSTGRESQL": str(programs)}
    done = subprocess.run(command, env=environment, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout + done.stderr
