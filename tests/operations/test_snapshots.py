"""A snapshot held open keeps vacuum from removing dead rows: `points status` names it, and the metrics tell its age."""

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import psycopg
import pytest
from click.testing import CliRunner
from prometheus_client.parser import text_string_to_metric_families

from app.cli.status import status
from app.metrics.page import Page
from tests.conftest import forget_everything
from tests.deadline import until
from tests.integration import books
from tests.operations.server import Server, standby_of
from tests.service.template import copy_to

pytestmark = pytest.mark.usefixtures("broker")

_NOTE = """
    INSERT INTO api_requests (organization_id, api_key_id, created_at, status, ms, sandbox, request_id, method)
    VALUES (1, 1, clock_timestamp() - interval '{age}', 200, 1, false, 'r', 'GET')
"""


@pytest.fixture
def primary(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Server]:
    copy_to(tmp_path / "primary")
    server = Server(tmp_path / "primary")
    server.set(max_prepared_transactions="1", autovacuum="off")
    with server.running(monkeypatch):
        _note("1 hour")
        yield server


def _note(age: str) -> None:
    """Note a call as the web processes do, made so long ago."""
    books.execute(_NOTE.format(age=age))


def _found(folder: Path) -> dict[str, Any]:
    found: dict[str, Any] = json.loads(
        CliRunner().invoke(status, ["--json", "--data-dir", str(folder / "none")]).stdout
    )
    return found


def _figure() -> float:
    families = text_string_to_metric_families(Page().text().decode())
    return next(family.samples[0].value for family in families if family.name == "points_oldest_snapshot_seconds")


def _session(server: Server) -> psycopg.Connection[tuple[Any, ...]]:
    """Connect as another role, of whose sessions PostgreSQL shows ours little."""
    password = server.data.password("postgresql_superuser")
    return psycopg.connect(
        server.postgresql.url(), user="postgres", password=password, application_name="pg_dump", autocommit=True
    )


def test_a_session_a_prepared_transaction_or_a_forgotten_slot_that_holds_vacuum_back_is_named(
    primary: Server, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert (_found(tmp_path)["oldest_snapshot"], _found(tmp_path)["warnings"], _figure()) == (None, [], 0)

    with _session(primary) as dump:
        dump.execute("BEGIN ISOLATION LEVEL REPEATABLE READ")
        dump.execute("SELECT count(*) FROM organizations")
        assert _found(tmp_path)["oldest_snapshot"] is None, "nothing is kept for it yet"
        for age in ("4 minutes", "3 minutes", "2 minutes"):
            _note(age)
        oldest, pid = _found(tmp_path)["oldest_snapshot"], dump.info.backend_pid
        assert (oldest["kind"], oldest["pid"], oldest["application"]) == ("session", pid, "pg_dump")
        assert 240 <= oldest["seconds"] < 300
        assert (_found(tmp_path)["warnings"], 240 <= _figure() < 300) == ([], True)
        dump.execute("ROLLBACK")
    assert _found(tmp_path)["oldest_snapshot"] is None

    with _session(primary) as dump:
        dump.execute("BEGIN ISOLATION LEVEL REPEATABLE READ")
        dump.execute("SELECT count(*) FROM organizations")
        _note("15 minutes")
        [warning] = _found(tmp_path)["warnings"]
        assert warning == (
            f"For 15 minutes the session with pid {dump.info.backend_pid} (pg_dump, user postgres) has kept vacuum from"
            f" removing dead rows, and sends become slower: let it end, or end it: SELECT"
            f" pg_terminate_backend({dump.info.backend_pid})."
            " Read on in docs/operating.md at “A snapshot is held open”."
        )
        first = CliRunner().invoke(status, ["--data-dir", str(tmp_path / "none")]).output.splitlines()[0]
        assert first.startswith("Status:         not well. ")
        assert warning in first
        dump.execute("ROLLBACK")

    with _session(primary) as somebody:
        somebody.execute("BEGIN")
        somebody.execute("CREATE TABLE theirs ()")
        somebody.execute("PREPARE TRANSACTION 'left'")
        _note("16 minutes")
        [warning] = _found(tmp_path)["warnings"]
        assert "the prepared transaction left has kept vacuum" in warning
        assert "COMMIT PREPARED 'left' or ROLLBACK PREPARED 'left'" in warning
        somebody.execute("ROLLBACK PREPARED 'left'")
    assert _found(tmp_path)["warnings"] == []
    _a_standby_and_then_its_slot(primary, tmp_path, monkeypatch)


def _a_standby_and_then_its_slot(primary: Server, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    standby = standby_of(primary, tmp_path)
    standby.set(hot_standby_feedback="on", wal_receiver_status_interval="1s")
    with standby.running(monkeypatch):
        monkeypatch.setenv("DATABASE_URL", primary.postgresql.url())
        forget_everything()
        with _session(standby) as read:
            read.execute("BEGIN ISOLATION LEVEL REPEATABLE READ")
            read.execute("SELECT count(*) FROM organizations")
            _note("17 minutes")
            until(lambda: _kind(tmp_path) == "standby", within_s=60)
            primary.ask("SELECT pg_create_physical_replication_slot('left')")
            standby.tell("ALTER SYSTEM SET primary_slot_name = 'left'")
            standby.ask("SELECT pg_reload_conf()")
            until(lambda: _kind(tmp_path) == "slot", within_s=60)
    until(lambda: primary.ask("SELECT active FROM pg_replication_slots") == "False", within_s=60)
    [warning] = _found(tmp_path)["warnings"]
    assert "the slot left has kept vacuum" in warning
    assert warning.count("SELECT pg_drop_replication_slot('left')") == 1
    primary.ask("SELECT pg_drop_replication_slot('left')")
    assert _found(tmp_path)["warnings"] == []


def _kind(folder: Path) -> str | None:
    oldest = _found(folder)["oldest_snapshot"]
    return None if oldest is None else str(oldest["kind"])
