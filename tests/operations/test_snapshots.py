"""A snapshot held open keeps vacuum from removing dead rows: `points status` names it, and the metrics tell its age."""

from typing import Any

import psycopg
import pytest
from click.testing import CliRunner

from app.cli.status import status as status_command
from tests.conftest import forget_everything
from tests.deadline import until
from tests.integration import books
from tests.operations.server import Pair
from tests.operations.shown import figures, status

pytestmark = [pytest.mark.usefixtures("broker"), pytest.mark.long]

_NOTE = """
    INSERT INTO api_requests (organization_id, api_key_id, created_at, status, ms, sandbox, request_id, method)
    VALUES (1, 1, clock_timestamp() - interval '{age}', 200, 1, false, 'r', 'GET')
"""


def _note(age: str) -> None:
    """Note a call as the web processes do, made so long ago."""
    books.execute(_NOTE.format(age=age))


def _read(connection: psycopg.Connection[tuple[Any, ...]]) -> None:
    """Hold a snapshot open, as a dump does."""
    connection.execute("BEGIN ISOLATION LEVEL REPEATABLE READ")
    connection.execute("SELECT count(*) FROM organizations")


def test_a_session_a_prepared_transaction_a_standby_or_a_forgotten_slot_that_holds_vacuum_back_is_named(
    pair: Pair, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv("DATABASE_READ_URL")
    forget_everything()
    primary, standby = pair
    _note("1 hour")
    assert (_oldest(), status()["warnings"], figures()["points_oldest_snapshot_seconds"]) == ({}, [], 0)

    with primary.superuser(application_name="pg_dump") as dump:
        _read(dump)
        assert _oldest() == {}, "nothing is kept for it yet"
        for age in ("4 minutes", "3 minutes", "2 minutes"):
            _note(age)
        oldest, pid = _oldest(), dump.info.backend_pid
        assert (oldest["kind"], oldest["pid"], oldest["application"]) == ("session", pid, "pg_dump")
        assert 240 <= oldest["seconds"] < 300
        assert (status()["warnings"], 240 <= figures()["points_oldest_snapshot_seconds"] < 300) == ([], True)
        dump.execute("ROLLBACK")
    assert _oldest() == {}

    with primary.superuser(application_name="pg_dump") as dump:
        _read(dump)
        _note("15 minutes")
        warning, pid = _warning(), dump.info.backend_pid
        assert warning.startswith(f"For 15 minutes the session with pid {pid} (pg_dump, user postgres)")
        assert f"SELECT pg_terminate_backend({pid})" in warning
        first = CliRunner().invoke(status_command, ["--data-dir", "/none"]).output.splitlines()[0]
        assert first.startswith("Status:         not well. ")
        assert warning in first
        dump.execute("ROLLBACK")

    with primary.superuser(application_name="pg_dump") as somebody:
        somebody.execute("BEGIN")
        somebody.execute("CREATE TABLE theirs ()")
        somebody.execute("PREPARE TRANSACTION 'left'")
        _note("16 minutes")
        assert "the prepared transaction left has kept vacuum" in _warning()
        assert "COMMIT PREPARED 'left' or ROLLBACK PREPARED 'left'" in _warning()
        somebody.execute("ROLLBACK PREPARED 'left'")
    assert status()["warnings"] == []

    standby.set_now(hot_standby_feedback="on", wal_receiver_status_interval="1s")
    with standby.superuser() as read:
        _read(read)
        _note("17 minutes")
        until(lambda: _oldest().get("kind") == "standby")
        primary.ask("SELECT pg_create_physical_replication_slot('left')")
        standby.set_now(primary_slot_name="left")
        until(lambda: _oldest().get("kind") == "slot")
    standby.postgresql.stop()
    until(lambda: primary.ask("SELECT active FROM pg_replication_slots") == "False")
    assert "the slot left has kept vacuum" in _warning()
    assert _warning().count("SELECT pg_drop_replication_slot('left')") == 1
    primary.ask("SELECT pg_drop_replication_slot('left')")
    assert status()["warnings"] == []


def _oldest() -> dict[str, Any]:
    return status()["oldest_snapshot"] or {}


def _warning() -> str:
    [warning] = status()["warnings"]
    return str(warning)
