"""The Procfile, the image and make: each line becomes its program, as points up runs it."""

import re
import sys
from pathlib import Path

import pytest

from app.local import parts
from app.local.supervisor import Part
from app.messaging.jobs import DELIVERIES
from tests.unit.deployment.files import ROOT, instructions, procfile
from tests.unit.deployment.lines import run_line, words_of_line


def _words_of(part: Part) -> list[str]:
    python, _, *words = list(part.command)
    assert python == sys.executable, "`points up` runs every part of ours as a module of its own Python"
    return words


def test_web_is_what_points_up_runs(tmp_path: Path) -> None:
    assert words_of_line("web", tmp_path, WEB_ADDRESS="127.0.0.1") == _words_of(parts.web(8000))


def test_a_worker_is_what_points_up_runs(tmp_path: Path) -> None:
    assert words_of_line("worker", tmp_path, WORKER_NAME="worker1") == _words_of(parts.worker(1))


def test_a_delivering_worker_is_what_points_up_runs_and_takes_nothing_else(tmp_path: Path) -> None:
    words = words_of_line("deliveries", tmp_path)
    assert words == _words_of(parts.deliveries())
    assert words[words.index("--queues") + 1] == DELIVERIES
    assert words[words.index("--pool") + 1] == "threads"


def test_beat_is_what_points_up_runs_and_answers_pings(tmp_path: Path) -> None:
    ours = _words_of(parts.beat())
    assert words_of_line("beat", tmp_path) == ours


def test_flower_is_what_points_up_runs_on_the_loopback_address(tmp_path: Path) -> None:
    words = words_of_line("flower", tmp_path, FLOWER_BASIC_AUTH="user:password")
    assert words == _words_of(parts.flower(5555, "password", tmp_path / "flower"))
    assert "--address=127.0.0.1" in words


@pytest.mark.parametrize("environment", [{}, {"FLOWER_BASIC_AUTH": ""}])
def test_flower_without_a_password_does_not_start_and_says_why(tmp_path: Path, environment: dict[str, str]) -> None:
    finished = run_line("flower", tmp_path, **environment)
    assert finished.returncode != 0
    assert finished.stdout == ""
    assert "FLOWER_BASIC_AUTH: must be set to user:password, because" in finished.stderr


def test_the_password_of_flower_stands_in_no_list_of_processes(tmp_path: Path) -> None:
    assert "sesame" not in " ".join(words_of_line("flower", tmp_path, FLOWER_BASIC_AUTH="user:sesame"))


@pytest.mark.parametrize("name", ["web", "worker", "deliveries", "beat", "flower", "release"])
def test_a_line_of_the_procfile_becomes_its_program(name: str) -> None:
    last_command = procfile()[name].rpartition(" && ")[2]
    assert last_command.startswith("exec "), "a signal to the line would end its shell and not the program"


def test_the_image_does_not_run_as_root() -> None:
    last_stage = (ROOT / "Dockerfile").read_text().rpartition("\nFROM ")[2]
    assert re.findall(r"^USER (.*)$", last_stage, re.MULTILINE) == ["10001:10001"]


def test_what_the_image_installs_is_pinned_by_hashes_and_the_project_adds_nothing() -> None:
    installs = re.findall(r"pip install ([^&]*)", " && ".join(instructions("RUN")))
    assert [install.strip() for install in installs] == [
        "--require-hashes --requirement requirements.lock",
        "--no-deps --no-build-isolation .",
    ]
