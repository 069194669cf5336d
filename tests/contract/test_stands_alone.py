"""That this folder knows nothing of the inside, so that any redesign leaves it standing."""

import subprocess
import sys
from pathlib import Path

_FOLDER = Path(__file__).parent
# The speed guard runs the bench, which prepares its service from within.
_NAMES = [f"tests.contract.{file.stem}" for file in sorted(_FOLDER.glob("*.py")) if file.stem != "test_speed"]

_PROGRAM = f"""
import importlib, sys
sys.modules.update(dict.fromkeys(["app", "worker", "migrations"]))
for name in {_NAMES}:
    importlib.import_module(name)
"""


def test_no_file_imports_anything_of_the_inside_nor_does_what_it_imports() -> None:
    command = [sys.executable, "-c", _PROGRAM]
    done = subprocess.run(command, cwd=_FOLDER.parents[1], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
