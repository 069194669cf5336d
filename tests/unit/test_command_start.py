"""The start of a command: it imports what it needs and no more, and a shell can complete it."""

import json
import os
import subprocess
import sys
from typing import Any

import click
import pytest
from click.testing import CliRunner

from app.cli import points
from app.cli.answer import Answer

# Each of them takes longer to import than `points --help` takes.
_HEAVY = ("alembic", "celery", "flask", "httpx", "pydantic", "redis", "sqlalchemy", "rich")


def _imported(*arguments: str) -> set[str]:
    """Run a command in a process of its own and return which of the heavy modules it has imported."""
    code = "import sys\nfrom app.cli import points\npoints(standalone_mode=False)\nprint('\\n', *sys.modules)"
    done = subprocess.run([sys.executable, "-c", code, *arguments], capture_output=True, text=True, check=True)
    return set(_HEAVY) & set(done.stdout.rpartition("\n ")[2].split())


@pytest.mark.parametrize(
    ("arguments", "needed"),
    [
        (["--help"], set()),
        (["completion", "bash"], set()),
        (["organizations", "--help"], {"pydantic", "sqlalchemy"}),
        (["users", "create", "--help"], {"pydantic", "sqlalchemy"}),
    ],
)
def test_a_command_imports_only_what_it_needs(arguments: list[str], needed: set[str]) -> None:
    assert _imported(*arguments) == needed


def test_the_help_has_each_command_under_its_name_with_the_first_line_of_its_own_help() -> None:
    context = click.Context(points)
    for name, (_, line) in points.modules.items():
        command = points.get_command(context, name)
        assert command is not None
        assert command.name == name
        assert command.get_short_help_str(limit=200).startswith(line.removesuffix("."))
    printed = CliRunner().invoke(points, ["--help"]).stdout
    assert all(f"  {name} " in printed for name in points.modules)


def test_every_command_and_every_command_of_a_group_has_a_help() -> None:
    for name in points.modules:
        command = points.get_command(click.Context(points), name)
        group = list(command.commands.values()) if isinstance(command, click.Group) else [command]
        for each in group:
            assert each is not None
            assert each.help, f"{name} {each.name} explains itself"


@pytest.mark.parametrize(
    ("words", "completions"),
    [
        ("points organizations re", {"refill", "resume"}),
        ("points organizations create Acme --sand", {"--sandbox-balance"}),
    ],
)
def test_words_are_completed(words: str, completions: set[str]) -> None:
    environment = os.environ | {
        "_POINTS_COMPLETE": "bash_complete",
        "COMP_WORDS": words,
        "COMP_CWORD": str(words.count(" ")),
    }
    code = "from app.cli import main; main()"
    done = subprocess.run([sys.executable, "-c", code], env=environment, capture_output=True, text=True, check=True)
    assert {line.partition(",")[2] for line in done.stdout.splitlines()} == completions


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
