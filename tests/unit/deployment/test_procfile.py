"""The Procfile: each line becomes its program, as `points up` runs it."""

import sys
from pathlib import Path

import pytest

from app.local import parts
from app.local.part import Part
from app.messaging.jobs import DELIVERIES
from tests.unit.deployment.files import procfile
from tests.unit.deployment.lines import run_line, words_of_line

_EVERYWHERE = "0.0.0.0"  # noqa: S104  # Compared with, and never bound to.


def _words_of(part: Part) -> list[str]:
    python, _, *words = list(part.command)
    assert python == sys.executable, "`points up` runs every part of ours as a module of its own Python"
    return words


def test_the_procfile_names_every_process() -> None:
    assert list(procfile()) == ["web", "worker", "deliveries", "beat", "flower", "release"]


def test_web_listens_on_port_8000_of_every_address_unless_told_otherwise(tmp_path: Path) -> None:
    assert words_of_line("web", tmp_path)[-1] == f"{_EVERYWHERE}:8000"
    assert words_of_line("web", tmp_path, PORT="9", WEB_ADDRESS="127.0.0.1")[-1] == "127.0.0.1:9"


@pytest.mark.parametrize(("said", "form"), [(None, "text"), ("auto", "text"), ("text", "text"), ("json", "json")])
def test_points_up_has_its_parts_write_for_people_unless_it_is_told_otherwise(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, said: str | None, form: str
) -> None:
    if said is not None:
        monkeypatch.setenv("POINTS_LOG_FORMAT", said)
    made = (
        parts.web(8000),
        parts.worker(1),
        parts.deliveries(),
        parts.beat(),
        parts.flower(5555, "password", tmp_path),
    )
    assert [part.environment["POINTS_LOG_FORMAT"] for part in made] == [form] * 5


def test_web_is_what_points_up_runs(tmp_path: Path) -> None:
    assert words_of_line("web", tmp_path, WEB_ADDRESS="127.0.0.1") == _words_of(parts.web(8000))


def test_a_worker_is_what_points_up_runs(tmp_path: Path) -> None:
    assert words_of_line("worker", tmp_path, WORKER_NAME="worker1") == _words_of(parts.worker(1))


def test_a_worker_has_as_many_processes_as_it_is_told(tmp_path: Path) -> None:
    words = words_of_line("worker", tmp_path, WORKER_CONCURRENCY="11")
    assert words[words.index("--concurrency") + 1] == "11"


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


def test_flower_listens_where_it_is_told(tmp_path: Path) -> None:
    words = words_of_line("flower", tmp_path, FLOWER_BASIC_AUTH="user:password", FLOWER_ADDRESS="::1", FLOWER_PORT="9")
    assert {"--address=::1", "--port=9"} <= set(words)


@pytest.mark.parametrize("port", ["", "tcp://10.0.0.7:5555"])
def test_flower_takes_its_own_port_where_kubernetes_tells_of_a_service_of_its_name(tmp_path: Path, port: str) -> None:
    words = words_of_line("flower", tmp_path, FLOWER_BASIC_AUTH="user:password", FLOWER_PORT=port)
    assert words == words_of_line("flower", tmp_path, FLOWER_BASIC_AUTH="user:password")


@pytest.mark.parametrize("environment", [{}, {"FLOWER_BASIC_AUTH": ""}])
def test_flower_without_a_password_does_not_start_and_says_why(tmp_path: Path, environment: dict[str, str]) -> None:
    finished = run_line("flower", tmp_path, **environment)
    assert finished.returncode != 0
    assert finished.stdout == ""
    assert "FLOWER_BASIC_AUTH: must be set to user:password, because" in finished.stderr


def test_the_password_of_flower_stands_in_no_list_of_processes(tmp_path: Path) -> None:
    assert "sesame" not in " ".join(words_of_line("flower", tmp_path, FLOWER_BASIC_AUTH="user:sesame"))


def test_a_release_migrates(tmp_path: Path) -> None:
    assert words_of_line("release", tmp_path) == ["points", "migrate"]


@pytest.mark.parametrize("name", ["web", "worker", "deliveries", "beat", "flower", "release"])
def test_a_line_of_the_procfile_becomes_its_program(name: str) -> None:
    last_command = procfile()[name].rpartition(" && ")[2]
    assert last_command.startswith("exec "), "a signal to the line would end its shell and not the program"
