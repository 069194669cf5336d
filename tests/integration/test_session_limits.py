"""What every connection to PostgreSQL begins with: waits that end, UTC, and no more of them than the setting allows."""

from collections.abc import Iterator

import pytest
from sqlalchemy import Engine, text
from sqlalchemy.exc import DBAPIError
from sqlalchemy.exc import TimeoutError as PoolTimeout

from app.cli.operator_command import Unreachable, database_in_reach
from app.errors import Refused
from app.postgres import connections
from app.postgres.connections import new_engine
from app.postgres.database import is_away
from app.postgres.timed_connection import TimedConnection

_LIMITS = {
    "statement_timeout": connections.STATEMENT_TIMEOUT_MS,
    "lock_timeout": connections.LOCK_TIMEOUT_MS,
    "idle_in_transaction_session_timeout": connections.IDLE_IN_TRANSACTION_TIMEOUT_MS,
    "client_connection_check_interval": connections.CLIENT_CHECK_INTERVAL_MS,
}


@pytest.fixture
def another_mind(scratch: Engine) -> Iterator[None]:
    """Let the database itself set no limit, and what the service could not work with."""
    with scratch.begin() as connection:
        name = connection.exec_driver_sql("SELECT current_database()").scalar_one()
        contrary = {"timezone": "'Asia/Tokyo'", "datestyle": "German", "search_path": "elsewhere", "array_nulls": "off"}
        for setting, value in {**dict.fromkeys(_LIMITS, "0"), **contrary}.items():
            connection.exec_driver_sql(f"ALTER DATABASE {name} SET {setting} = {value}")
    yield
    with scratch.begin() as connection:
        connection.exec_driver_sql(f"ALTER DATABASE {name} RESET ALL")


@pytest.mark.usefixtures("another_mind")
def test_a_session_begins_with_our_limits_and_in_utc_whatever_the_database_has_set(server_url: str) -> None:
    engine = new_engine(server_url, pool_size=1)
    with engine.begin() as connection:
        shown = connection.exec_driver_sql("SELECT name, setting FROM pg_settings").all()
    engine.dispose()
    settings = {row.name: row.setting for row in shown}
    assert {name: int(settings[name]) for name in _LIMITS} == _LIMITS
    assert {name: settings[name] for name in ("TimeZone", "DateStyle", "search_path", "array_nulls")} == {
        "TimeZone": "UTC",
        "DateStyle": "ISO, MDY",
        "search_path": "public",
        "array_nulls": "on",
    }
    assert (settings["enable_seqscan"], settings["jit"]) == ("off", "off")


def test_a_session_speaks_utf_8_whatever_libpq_is_told(server_url: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PGCLIENTENCODING", "LATIN1")
    engine = new_engine(server_url, pool_size=1)
    with engine.begin() as connection:
        assert connection.exec_driver_sql("SHOW client_encoding").scalar_one() == "UTF8"
    engine.dispose()


def test_what_the_address_itself_asks_for_wins(server_url: str) -> None:
    engine = new_engine(f"{server_url}?options=-c%20statement_timeout%3D7s", pool_size=1)
    with engine.begin() as connection:
        assert connection.exec_driver_sql("SHOW statement_timeout").scalar_one() == "7s"
        assert connection.exec_driver_sql("SHOW lock_timeout").scalar_one() == "8s"
    engine.dispose()


def test_an_error_repeats_no_value_of_its_statement(server_url: str) -> None:
    engine = new_engine(server_url, pool_size=1)
    with engine.begin() as connection, pytest.raises(DBAPIError) as caught:
        connection.execute(text("SELECT nothing WHERE :word = ''"), {"word": "ann@example.com"})
    engine.dispose()
    assert "ann@" not in str(caught.value)


def test_connections_are_bounded_and_a_full_pool_is_an_outage(server_url: str, monkeypatch: pytest.MonkeyPatch) -> None:
    engine = new_engine(server_url, pool_size=2)
    monkeypatch.setattr(engine.pool, "_timeout", 0.05)
    with engine.connect(), engine.connect(), pytest.raises(PoolTimeout) as caught:
        engine.connect()
    assert is_away(caught.value)
    with engine.connect():
        pass
    engine.dispose()


def test_who_wants_to_wait_less_leaves_the_next_user_of_the_connection_its_time(server_url: str) -> None:
    engine = new_engine(server_url, pool_size=1)
    timeouts = []
    for seconds in (0.5, None):
        with engine.begin() as connection:
            if seconds is not None:
                connections.wait_at_most(connection, seconds)
            timed = connection.connection.driver_connection
            assert isinstance(timed, TimedConnection)
            timeouts.append((timed.answer_timeout_s, connection.exec_driver_sql("SHOW statement_timeout").scalar_one()))
    engine.dispose()
    assert timeouts == [(1.5, "500ms"), (connections.ANSWER_TIMEOUT_S, "20s")]


@pytest.mark.usefixtures("database")
def test_a_child_leaves_its_parents_connections_open_and_waits_for_no_lock_of_its_parent() -> None:
    with connections.engine().connect() as connection:
        parents = connection.connection.driver_connection
    assert isinstance(parents, TimedConnection)
    with connections._engine_lock:  # As another thread of the parent may have held it at the fork.
        connections.discard_inherited_connections()
        assert not connections._engine_lock.locked()
    with connections.engine().connect() as connection:
        assert connection.connection.driver_connection is not parents
    assert parents.execute("SELECT 1").fetchone() == (1,)
    parents.close()


def test_a_command_that_waits_for_a_lock_in_vain_says_so(server_url: str) -> None:
    engine = new_engine(f"{server_url}?options=-c%20lock_timeout%3D10", pool_size=2)
    with engine.begin() as holder, engine.begin() as waiting:
        holder.exec_driver_sql("SELECT pg_advisory_xact_lock(4712)")
        words = r"gave up waiting \(canceling statement due to lock timeout\)"
        with pytest.raises(Refused, match=words), database_in_reach():
            waiting.exec_driver_sql("SELECT pg_advisory_xact_lock(4712)")
    engine.dispose()


def test_of_a_connection_that_is_lost_it_is_said_that_the_work_may_be_done(server_url: str) -> None:
    engine = new_engine(server_url, pool_size=2)
    with engine.connect() as killer, engine.connect() as lost:
        pid = lost.exec_driver_sql("SELECT pg_backend_pid()").scalar_one()
        killer.exec_driver_sql(f"SELECT pg_terminate_backend({pid})")
        with pytest.raises(Unreachable, match="may have been made all the same"), database_in_reach():
            lost.exec_driver_sql("SELECT 1")
    engine.dispose()
