"""A snapshot held open keeps vacuum from removing dead rows: `points status` names it, and the metrics tell its age."""

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import psycopg
import pytest
from click.testing import CliRunner

from app.cli.status import status as status_command
from tests.conftest import forget_everything
from tests.deadline import until
from tests.integration import books
from tests.operations.server import Server, standby_of
from tests.operations.shown import figures, status

pytestmark = [pytest.mark.usefixtures("broker"), pytest.mark.long]

_NOTE = """
    INSERT INTO api_requests (organization_id, api_key_id, created_at, status, ms, sandbox, request_id, method)
    VALUES (1, 1, clock_timestamp() - interval '{age}', 200, 1, false, 'r', 'GET')
"""


@pytest.fixture
def primary(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Server]:
    server = Server.migrated(tmp_path / "primary")
    server.set(max_prepared_transactions="1", autovacuum="off")
    with server.running(monkeypatch):
        _note("1 hour")
        yield server


def _note(age: str) -> None:
    """Note a call as the web processes do, made so long ago."""
    books.execute(_NOTE.format(age=age))


def _session(server: Server) -> psycopg.Connection[tuple[Any, ...]]:
    """Connect as another role, of whose sessions PostgreSQL shows ours little."""
    password = server.data.password("postgresql_superuser")
    return psycopg.connect(
        server.postgresql.url(), user="postgres", password=password, application_name="pg_dump", autocommit=True
    )


def _read(connection: psycopg.Connection[tuple[Any, ...]]) -> None:
    """Hold a snapshot open, as a dump does."""
    connection.execute("BEGIN ISOLATION LEVEL REPEATABLE READ")
    connection.execute("SELECT count(*) FROM organizations")


def test_a_session_a_prepared_transaction_or_a_forgotten_slot_that_holds_vacuum_back_is_named(
    primary: Server, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert (status()["oldest_snapshot"], status()["warnings"], figures()["points_oldest_snapshot_seconds"]) == (
        None,
        [],
        0,
    )

    with _session(primary) as dump:
        _read(dump)
        assert status()["oldest_snapshot"] is None, "nothing is kept for it yet"
        for age in ("4 minutes", "3 minutes", "2 minutes"):
            _note(age)
        oldest, pid = status()["oldest_snapshot"], dump.info.backend_pid
        assert (oldest["kind"], oldest["pid"], oldest["application"]) == ("session", pid, "pg_dump")
        assert 240 <= oldest["seconds"] < 300
        assert (status()["warnings"], 240 <= figures()["points_oldest_snapshot_seconds"] < 300) == ([], True)
        dump.execute("ROLLBACK")
    assert status()["oldest_snapshot"] is None

    with _session(primary) as dump:
        _read(dump)
        _note("15 minutes")
        [warning] = status()["warnings"]
        assert warning.startswith(
            f"For 15 minutes the session with pid {dump.info.backend_pid} (pg_dump, user postgres)"
        )
        assert f"SELECT pg_terminate_backend({dump.info.backend_pid})" in warning
        first = CliRunner().invoke(status_command, ["--data-dir", "/none"]).output.splitlines()[0]
        assert first.startswith("Status:         not well. ")
        assert warning in first
        dump.execute("ROLLBACK")

    with _session(primary) as somebody:
        somebody.execute("BEGIN")
        somebody.execute("CREATE TABLE theirs ()")
        somebody.execute("PREPARE TRANSACTION 'left'")
        _note("16 minutes")
        [warning] = status()["warnings"]
        assert "the prepared transaction left has kept vacuum" in warning
        assert "COMMIT PREPARED 'left' or ROLLBACK PREPARED 'left'" in warning
        somebody.execute("ROLLBACK PREPARED 'left'")
    assert status()["warnings"] == []
    _a_standby_and_then_its_slot(primary, tmp_path, monkeypatch)


def _a_standby_and_then_its_slot(primary: Server, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    standby = standby_of(primary, tmp_path)
    standby.set(hot_standby_feedback="on", wal_receiver_status_interval="1s")
    with standby.running(monkeypatch):
        monkeypatch.setenv("DATABASE_URL", primary.postgresql.url())
        forget_everything()
        with _session(standby) as read:
            _read(read)
            _note("17 minutes")
            until(lambda: _kind() == "standby", within_s=60)
            primary.ask("SELECT pg_create_physical_replication_slot('left')")
            standby.tell("ALTER SYSTEM SET primary_slot_name = 'left'")
            standby.ask("SELECT pg_reload_conf()")
            until(lambda: _kind() == "slot", within_s=60)
    until(lambda: primary.ask("SELECT active FROM pg_replication_slots") == "False", within_s=60)
    [warning] = status()["warnings"]
    assert "the slot left has kept vacuum" in warning
    assert warning.count("SELECT pg_drop_replication_slot('left')") == 1
    primary.ask("SELECT pg_drop_replication_slot('left')")
    assert status()["warnings"] == []


def _kind() -> str | None:
    oldest = status()["oldest_snapshot"]
    return None if oldest is None else str(oldest["kind"])
