"""The commands, as an operator gives them: what they do, what they print, and how they fail."""

import json
import threading
from http.server import BaseHTTPRequestHandler, HTTPServer
from pathlib import Path

import psycopg
import pytest
from sqlalchemy import make_url

import migrations
from app.local.datadir import DataDir
from app.local.postgresql import PostgreSQL
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


def test_a_migration_that_makes_a_database_says_so(service: Service, tmp_path: Path) -> None:
    done = service.run("migrate", "--data-dir", str(tmp_path))
    assert (done.returncode, done.stdout) == (0, f"The database is at revision {migrations.newest()}.\n")
    assert done.stderr == f"points: There was no database in {tmp_path}: a new, empty one was created.\n"


def test_a_command_with_a_database_url_needs_no_data_directory(service: Service, tmp_path: Path) -> None:
    url = service.json("status")["database_url"]
    for words in ("organizations list", "audit", "migrate"):
        done = service.run(*words.split(), "--data-dir", str(tmp_path / "none"), DATABASE_URL=url)
        assert (done.returncode, done.stderr) == (0, ""), words
    assert not (tmp_path / "none").exists()


def test_status_is_not_well_for_a_database_without_tables(service: Service) -> None:
    url = service.json("status")["database_url"]
    elsewhere = f"{url.rpartition('/')[0]}/postgres"
    done = service.run("status", "--data-dir", str(service.data_dir), DATABASE_URL=elsewhere)
    assert done.returncode == 1
    assert "not well. PostgreSQL: it has no tables yet. Read on in docs/operating.md" in done.stdout.splitlines()[0]


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


class _NotReady(BaseHTTPRequestHandler):
    """A web process whose database and Redis are away."""

    def do_GET(self) -> None:
        self.send_response(200 if self.path == "/healthz" else 503)
        self.end_headers()

    def log_message(self, *_: object) -> None:
        pass


def test_a_web_process_that_answers_is_said_to_while_its_servers_are_away(service: Service, tmp_path: Path) -> None:
    with HTTPServer(("127.0.0.1", 0), _NotReady) as web:
        threading.Thread(target=web.serve_forever, kwargs={"poll_interval": 0.05}).start()
        try:
            (tmp_path / "running.json").write_text(json.dumps({"web_url": f"http://127.0.0.1:{web.server_port}"}))
            done = service.run(
                "status",
                "--json",
                "--data-dir",
                str(tmp_path),
                DATABASE_URL="postgresql://127.0.0.1:1/points",
                REDIS_URL="redis://127.0.0.1:1",
            )
        finally:
            web.shutdown()
    found = json.loads(done.stdout)
    assert (found["web"], found["flower"], found["database"], found["redis"]) == (True, None, None, None)


@pytest.mark.parametrize("is_there", [False, True])
def test_an_audit_without_a_database_is_no_good_news(service: Service, tmp_path: Path, is_there: bool) -> None:
    elsewhere = tmp_path / "elsewhere"
    if is_there:
        elsewhere.mkdir()
    done = service.run("audit", "--data-dir", str(elsewhere))
    assert (done.returncode, done.stdout) == (1, "")
    assert f"There is no database in {elsewhere}." in done.stderr
    assert list(tmp_path.rglob("*")) == [elsewhere] * is_there


def test_status_of_a_folder_that_nothing_was_started_in_writes_nothing(service: Service, tmp_path: Path) -> None:
    done = service.run("status", "--json", "--data-dir", str(tmp_path))
    found = json.loads(done.stdout)
    assert (found["database"], found["redis"], found["web"]) == (None, None, False)
    assert list(tmp_path.iterdir()) == []


def test_a_role_that_may_not_is_told_so_in_one_sentence(service: Service) -> None:
    server = PostgreSQL(DataDir(service.data_dir))
    role = make_url(server.url()).set(username="guest", password="guest")
    with server._connect_as_superuser() as superuser:
        superuser.execute("CREATE ROLE guest LOGIN PASSWORD 'guest'")
        superuser.execute("CREATE DATABASE borrowed")
        try:
            borrowed = role.set(database="borrowed").render_as_string(hide_password=False)
            migrated = service.run("migrate", DATABASE_URL=borrowed)
            listed = service.run("organizations", "list", DATABASE_URL=role.render_as_string(hide_password=False))
        finally:
            superuser.execute("DROP DATABASE borrowed WITH (FORCE)")
            superuser.execute("DROP ROLE guest")
    assert (migrated.returncode, migrated.stdout) == (1, "")
    assert migrated.stderr == (
        "points: The role guest may not make tables in the schema public. Its owner, or a superuser, can let it:"
        " GRANT USAGE, CREATE ON SCHEMA public TO guest.\n"
    )
    assert (listed.returncode, listed.stdout) == (1, "")
    assert listed.stderr == (
        "points: The role of DATABASE_URL may not do what this command does: permission denied for table"
        " alembic_version.\n"
    )
