"""The start of a command: it imports what it needs and no more, and a shell can complete it."""

import json
import subprocess
import sys
from typing import Any

import pytest

from app.cli.answer import Answer


def _main(*arguments: str, **run: Any) -> subprocess.CompletedProcess[str]:
    code = "import sys; from app.cli import main; sys.argv = ['points', *sys.argv[1:]]; main()"
    return subprocess.run(
        [sys.executable, "-c", code, *arguments], stderr=subprocess.PIPE, text=True, check=False, **run
    )


def test_what_the_system_refuses_is_one_sentence() -> None:
    with open("/dev/full", "w") as full:
        done = _main("completion", "bash", stdout=full)
    assert (done.returncode, done.stderr) == (1, "points: No space left on device.\n")


def test_a_document_is_json_whatever_a_file_is_called(capsys: pytest.CaptureFixture[str]) -> None:
    Answer({"file": "f\udcfcr.csv", "bad": [{"email": "j\udcfcr@b.de", "line": 2}]}).print(as_json=True)
    assert json.loads(capsys.readouterr().out) == {"file": "f�r.csv", "bad": [{"email": "j�r@b.de", "line": 2}]}
