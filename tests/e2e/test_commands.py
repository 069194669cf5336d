"""The commands, as an operator gives them: what they do, what they print, and how they fail."""

import json
from pathlib import Path

import psycopg
import pytest

from tests.ports import free_port
from tests.service.inside import Service


def test_a_database_that_is_not_up_to_date_is_named_with_the_command_that_helps(service: Service) -> None:
    url = service.json("status")["database_url"]
    with psycopg.connect(url) as connection:
        connection.execute("CREATE SCHEMA IF NOT EXISTS empty")
    elsewhere = f"{url}?options=-c%20search_path%3Dempty"
    done = service.run("organizations", "list", DATABASE_URL=elsewhere, REDIS_URL="redis://127.0.0.1:1")
    assert done.returncode == 1
    assert "points migrate" in done.stderr


def test_a_command_with_a_database_url_needs_no_data_directory(service: Service, tmp_path: Path) -> None:
    url = service.json("status")["database_url"]
    for words in ("organizations list", "audit", "migrate"):
        done = service.run(*words.split(), "--data-dir", str(tmp_path / "none"), DATABASE_URL=url)
        assert (done.returncode, done.stderr) == (0, ""), words
    assert not (tmp_path / "none").exists()


@pytest.mark.parametrize("words", ["organizations list", "audit", "migrate", "up"])
def test_a_database_that_does_not_answer_is_one_sentence(service: Service, tmp_path: Path, words: str) -> None:
    ports_of_its_own = ["--port", str(free_port()), "--flower-port", str(free_port())] if words == "up" else []
    done = service.run(
        *words.split(),
        *ports_of_its_own,
        "--data-dir",
        str(tmp_path / "data"),
        DATABASE_URL="postgresql://points:hush@127.0.0.1:1/points",
        REDIS_URL="redis://127.0.0.1:1",
    )
    assert done.returncode == 1
    assert done.stderr.startswith("points: The database does not answer: ")
    assert "hush" not in done.stderr
    assert done.stderr.count("\n") == 1


def test_a_data_directory_that_was_not_there_is_made_and_named(service: Service, tmp_path: Path) -> None:
    elsewhere = ["--json", "--data-dir", str(tmp_path / "mistyped")]
    done = service.run("organizations", "create", "Acme", *elsewhere)
    assert json.loads(done.stdout)["name"] == "Acme"
    assert done.stderr == f"points: There was no database in {tmp_path / 'mistyped'}: a new, empty one was created.\n"
    again = service.run("organizations", "list", *elsewhere)
    assert again.stderr == f"points: No service runs here: this is about the database in {tmp_path / 'mistyped'}.\n"


def test_status_of_a_folder_without_a_database_names_it_and_writes_nothing(service: Service, tmp_path: Path) -> None:
    done = service.run("status", "--json", "--data-dir", str(tmp_path))
    found = json.loads(done.stdout)
    assert (found["database"], found["redis"], found["web"]) == (None, None, False)
    assert found["database_error"] == f"there is no database in {tmp_path}"
    assert list(tmp_path.iterdir()) == []
