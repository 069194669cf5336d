"""A snapshot held open keeps vacuum from removing dead rows: `points status` names it, and the metrics tell its age."""

from typing import Any

import psycopg
import pytest
from click.testing import CliRunner

from app.cli.status import status as status_command
from tests.conftest import Servers
from tests.integration import books
from tests.operations.shown import figures, status

pytestmark = pytest.mark.usefixtures("broker", "database")

_NOTE = """
    INSERT INTO api_requests (organization_id, api_key_id, created_at, status, ms, sandbox, request_id, method)
    VALUES (1, 1, clock_timestamp() - interval '{age}', 200, 1, false, 'r', 'GET')
"""


def _note(age: str) -> None:
    """Note a call as the web processes do, made so long ago."""
    books.execute(_NOTE.format(age=age))


def _read(connection: psycopg.Connection[tuple[Any, ...]]) -> None:
    """Hold a snapshot open, as a dump does."""
    connection.execute("SET TRANSACTION ISOLATION LEVEL REPEATABLE READ")
    connection.execute("SELECT count(*) FROM organizations")


def test_a_session_that_holds_vacuum_back_is_named_with_what_ends_it(servers: Servers) -> None:
    _note("1 hour")
    assert (_oldest(), status()["warnings"], figures()["points_oldest_snapshot_seconds"]) == ({}, [], 0)
    with psycopg.connect(servers.database_url, application_name="pg_dump") as dump:
        _read(dump)
        assert _oldest() == {}, "nothing is kept for it yet"
        _note("4 minutes")
        oldest, pid = _oldest(), dump.info.backend_pid
        assert (oldest["kind"], oldest["pid"], oldest["application"]) == ("session", pid, "pg_dump")
        assert (status()["warnings"], 240 <= figures()["points_oldest_snapshot_seconds"] < 300) == ([], True)
        dump.rollback()
        assert _oldest() == {}
        _read(dump)
        _note("15 minutes")
        [warning] = status()["warnings"]
        assert warning.startswith(f"For 15 minutes the session with pid {pid} (pg_dump, user points)")
        assert f"SELECT pg_terminate_backend({pid})" in warning
        first = CliRunner().invoke(status_command, ["--data-dir", "/none"]).output.splitlines()[0]
        assert first.startswith("Status:         not well. ")
        assert warning in first
    assert _oldest() == {}


def _oldest() -> dict[str, Any]:
    return status()["oldest_snapshot"] or {}
