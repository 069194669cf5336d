"""The start of a command: it imports what it needs and no more, and a shell can complete it."""

import json
import os
import subprocess
import sys
from typing import Any

import click
import pytest
from alembic.script import ScriptDirectory
from click.testing import CliRunner

import migrations
from app.cli import points
from app.cli.answer import Answer, write_error
from app.settings import INT64_MAX

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


@pytest.mark.parametrize("shell", ["bash", "zsh", "fish"])
def test_a_shell_is_told_how_to_complete(shell: str) -> None:
    done = CliRunner().invoke(points, ["completion", shell], prog_name="points")
    assert done.exit_code == 0
    assert f"_POINTS_COMPLETE={shell}_complete" in done.stdout


@pytest.mark.parametrize(
    ("words", "completions"),
    [
        ("points o", {"organizations"}),
        ("points organizations re", {"refill", "resume"}),
        ("points completion z", {"zsh"}),
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


def test_the_newest_revision_is_the_one_that_the_migrations_end_in() -> None:
    scripts = ScriptDirectory.from_config(migrations._config(""))
    assert migrations.newest() == scripts.get_current_head()


@pytest.mark.parametrize(("is_terminal", "lines"), [(True, 3), (False, 1)])
def test_a_sentence_is_wrapped_between_words_on_a_terminal_and_whole_elsewhere(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], is_terminal: bool, lines: int
) -> None:
    monkeypatch.setenv("COLUMNS", "30")
    monkeypatch.setattr(sys.stderr, "isatty", lambda: is_terminal)
    write_error("The data directory of-many-words/and-folders belongs to another.")
    printed = capsys.readouterr().err.splitlines()
    assert len(printed) == lines
    assert " ".join(printed) == "points: The data directory of-many-words/and-folders belongs to another."


def _main(*arguments: str, **run: Any) -> subprocess.CompletedProcess[str]:
    code = "import sys; from app.cli import main; sys.argv = ['points', *sys.argv[1:]]; main()"
    return subprocess.run(
        [sys.executable, "-c", code, *arguments], stderr=subprocess.PIPE, text=True, check=False, **run
    )


def test_what_the_system_refuses_is_one_sentence() -> None:
    with open("/dev/full", "w") as full:
        done = _main("completion", "bash", stdout=full)
    assert (done.returncode, done.stderr) == (1, "points: No space left on device.\n")


def test_a_terminal_that_knows_few_characters_gets_the_rest_spelled_out() -> None:
    done = _main("--help", stdout=subprocess.PIPE, env=os.environ | {"PYTHONIOENCODING": "latin-1"})
    assert (done.returncode, done.stderr) == (0, "")
    assert r"POINTS_\u2026" in done.stdout


def test_a_document_is_json_whatever_a_file_is_called(capsys: pytest.CaptureFixture[str]) -> None:
    Answer({"file": "f\udcfcr.csv", "bad": [{"email": "j\udcfcr@b.de", "line": 2}]}).print(as_json=True)
    assert json.loads(capsys.readouterr().out) == {"file": "f�r.csv", "bad": [{"email": "j�r@b.de", "line": 2}]}


def test_a_document_holds_more_points_than_64_bits_count(capsys: pytest.CaptureFixture[str]) -> None:
    balance = 3 * INT64_MAX
    Answer({"balance": balance}).print(as_json=True)
    assert json.loads(capsys.readouterr().out) == {"balance": balance}


@pytest.mark.parametrize("as_json", [True, False])
def test_faults_are_said_on_standard_error(capsys: pytest.CaptureFixture[str], *, as_json: bool) -> None:
    Answer({"bad": 1}, sentence="0 registered.", faults=["line 2: no address."]).print(as_json=as_json)
    said = capsys.readouterr()
    assert said.err == "line 2: no address.\n"
    assert "line 2" not in said.out


def test_web_and_flower_need_a_port_each() -> None:
    done = CliRunner().invoke(points, ["up", "--port", "18000", "--flower-port", "18000"])
    assert done.exit_code == 2
    assert "are both 18000" in done.stderr


@pytest.mark.parametrize("option", ["--balance", "--sandbox-balance"])
def test_no_organization_is_made_with_more_points_than_64_bits_count(option: str) -> None:
    done = CliRunner().invoke(points, ["organizations", "create", "Acme", option, str(INT64_MAX + 1)])
    assert (done.exit_code, "is not in the range" in done.stderr) == (2, True)
