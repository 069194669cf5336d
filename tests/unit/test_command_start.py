"""The start of a command: it imports what it needs and no more, and refuses what its options cannot have."""

import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner

from app.cli import points
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


_TAIL = "events tail --key pts_live_key"
_NO_SECONDS = "'--patience': it must be 0 or more seconds."
_NOT_HERE = "--forward-to takes an address of this machine"
_NO_CONSOLE = "'--url': it must be an address without a path"


@pytest.mark.parametrize(
    ("words", "told"),
    [
        (f"{_TAIL} --patience nan", _NO_SECONDS),
        ("reverse 1 --reason wrong --key pts_live_key --patience -1", _NO_SECONDS),
        (f"{_TAIL} --forward-to http://[x", _NOT_HERE),
        (f"{_TAIL} --forward-to http://127.0.0.1:99999/hook", _NOT_HERE),
        ("members create ann@example.com Ann A --organization 1 --role viewer --url nonsense", _NO_CONSOLE),
    ],
)
def test_a_value_that_an_option_cannot_have_is_refused_at_once_by_its_name(
    tmp_path: Path, words: str, told: str
) -> None:
    done = CliRunner().invoke(points, [*words.split(), "--data-dir", str(tmp_path)])
    assert told in f"{done.output} {done.exception}"
