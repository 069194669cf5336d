"""Connections that die or fall silent: nobody waits for ever, and the next call finds one that lives."""

import gc
import subprocess
import sys
import time
from collections.abc import Iterator
from urllib.parse import quote

import pytest
from sqlalchemy import Engine, event, text
from sqlalchemy.exc import DBAPIError, OperationalError

from app.audit.run import audit
from app.local.postgresql import PostgreSQL
from app.postgres import connections
from app.postgres.connections import disable_timeouts, new_engine
from app.postgres.database import is_away
from app.postgres.timed_connection import TimedConnection
from tests.crash.proxy import Proxy
from tests.deadline import until
from tests.ports import free_port

_ANSWER_TIMEOUT_S = 1.0


@pytest.fixture
def impatient(server_url: str, monkeypatch: pytest.MonkeyPatch) -> Iterator[Engine]:
    """Give a test an engine that waits for an answer for a moment only, with one connection."""
    monkeypatch.setattr(connections, "_answer_timeout_s", _ANSWER_TIMEOUT_S)
    engine = new_engine(server_url, pool_size=1)
    yield engine
    engine.dispose()


@pytest.fixture
def proxied(unmigrated: PostgreSQL, server_url: str) -> Iterator[tuple[str, Proxy]]:
    """Give a test an address of the server that leads through a proxy, and the proxy."""
    target = str(server_url).rpartition(":")[2].partition("/")[0]
    proxy = Proxy(free_port(), int(target))
    yield server_url.replace(f":{target}/", f":{proxy.port}/"), proxy
    proxy.stop()


def _backend(engine: Engine) -> int:
    with engine.begin() as connection:
        return int(connection.exec_driver_sql("SELECT pg_backend_pid()").scalar_one())


def _is_gone(engine: Engine, backend: int) -> bool:
    with engine.begin() as connection:
        statement = "SELECT FROM pg_stat_activity WHERE pid = %(pid)s"
        return connection.exec_driver_sql(statement, {"pid": backend}).first() is None


def test_a_silence_behind_a_proxy_ends_each_wait(proxied: tuple[str, Proxy], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(connections, "_answer_timeout_s", _ANSWER_TIMEOUT_S)
    url, proxy = proxied
    engine = new_engine(url, pool_size=2)
    with engine.connect() as first, engine.connect() as second:
        first.exec_driver_sql("SELECT 1")
        proxy.tell("hole")  # TCP goes on acknowledging: the proxy's kernel takes every byte.
        with pytest.raises(OperationalError, match="not answered"):
            second.exec_driver_sql("SELECT 1")
        with pytest.raises(OperationalError, match="not answered"):
            first.commit()
        with pytest.raises(OperationalError, match="timeout"):
            _backend(engine)  # Connecting is limited too.
        proxy.tell("forward")
        assert _backend(engine) > 0
    engine.dispose()


def test_one_silent_connection_replaces_them_all(proxied: tuple[str, Proxy], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(connections, "_answer_timeout_s", _ANSWER_TIMEOUT_S)
    url, proxy = proxied
    engine = new_engine(url, pool_size=3)
    open_at_once = [engine.connect() for _ in range(3)]
    for connection in open_at_once:
        connection.exec_driver_sql("SELECT 1")
        connection.close()
    proxy.tell("silence")  # For good; but whoever connects anew finds all well.
    with pytest.raises(OperationalError, match="not answered"):
        _backend(engine)
    assert [_backend(engine) > 0 for _ in range(3)] == [True] * 3
    engine.dispose()


def test_a_process_that_answers_callers_gives_up_sooner(server_url: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(connections, "_answer_timeout_s", connections.ANSWER_TIMEOUT_S)
    monkeypatch.setattr(connections, "_writable_only", False)
    connections.require_writable_server(answer_timeout_s=connections.FRONT_ANSWER_TIMEOUT_S)
    engine = new_engine(server_url, pool_size=1)
    with engine.connect() as connection:
        timed = connection.connection.driver_connection
        assert isinstance(timed, TimedConnection)
        assert timed.answer_timeout_s == connections.FRONT_ANSWER_TIMEOUT_S < connections.ANSWER_TIMEOUT_S
    engine.dispose()


def test_an_audit_gives_up_on_a_server_that_falls_silent(proxied: tuple[str, Proxy]) -> None:
    url, proxy = proxied
    engine = new_engine(url, pool_size=1)
    with engine.connect() as connection:
        connection.exec_driver_sql("SELECT 1")
        proxy.tell("silence")
        began = time.monotonic()
        with pytest.raises(OperationalError, match="not answered"):
            audit(connection, time_limit_s=0.5)
        assert time.monotonic() - began < connections.ANSWER_TIMEOUT_S
    engine.dispose()


def test_a_read_only_server_is_none_for_a_process_that_serves(unmigrated: PostgreSQL, server_url: str) -> None:
    name = server_url.rpartition("/")[2]
    serving, looking = new_engine(server_url, pool_size=1, writable_only=True), new_engine(server_url, pool_size=1)
    with unmigrated._connect_as_superuser() as superuser:
        superuser.execute(f"ALTER DATABASE {name} SET default_transaction_read_only = on")
        try:
            for _ in range(2):
                with pytest.raises(OperationalError, match="read-only"):
                    _backend(serving)
            with looking.begin() as connection, pytest.raises(DBAPIError) as refused:  # As through a pooler.
                connection.exec_driver_sql("CREATE TABLE written (number int)")
            assert is_away(refused.value)
        finally:
            superuser.execute(f"ALTER DATABASE {name} RESET default_transaction_read_only")
    assert _backend(serving) > 0
    serving.dispose()
    looking.dispose()


def test_an_address_may_say_itself_which_server_it_wants(unmigrated: PostgreSQL, server_url: str) -> None:
    engine = new_engine(f"{server_url}?target_session_attrs=read-only", pool_size=1, writable_only=True)
    with pytest.raises(OperationalError, match="not read-only"):
        _backend(engine)
    engine.dispose()


def test_transactions_are_read_committed_whatever_the_database_has_for_others(server_url: str) -> None:
    engine = new_engine(f"{server_url}?options=-c%20default_transaction_deferrable=on", pool_size=1)
    with engine.begin() as connection:
        shown = connection.exec_driver_sql(
            "SELECT setting, source FROM pg_settings WHERE name = 'default_transaction_isolation'"
        )
        assert tuple(shown.one()) == ("read committed", "client")
    engine.dispose()


def test_who_lifts_the_limit_waits_longer_and_the_next_user_of_the_connection_does_not(impatient: Engine) -> None:
    sleep = text(f"SELECT pg_sleep({2 * _ANSWER_TIMEOUT_S})")
    with impatient.begin() as connection:
        disable_timeouts(connection)
        connection.execute(sleep)
    with pytest.raises(OperationalError, match="not answered"), impatient.begin() as connection:
        connection.execute(sleep)


def test_after_a_restart_the_next_call_works_on_each_connection(unmigrated: PostgreSQL, server_url: str) -> None:
    engine = new_engine(server_url, pool_size=3)
    connections = [engine.connect() for _ in range(3)]
    for connection in connections:
        connection.exec_driver_sql("SELECT 1")
        connection.close()
    unmigrated.stop()
    unmigrated.start_detached()
    unmigrated.wait_until_ready()
    again = [engine.connect() for _ in range(3)]
    for connection in again:
        connection.exec_driver_sql("SELECT 1")
        connection.close()
    engine.dispose()


def test_a_server_that_ends_each_connection_at_once_is_away_like_any_other(server_url: str, scratch: Engine) -> None:
    engine = new_engine(server_url, pool_size=1)

    def end(connection: TimedConnection, _record: object) -> None:
        backend = connection.info.backend_pid
        with scratch.begin() as another:
            another.exec_driver_sql(f"SELECT pg_terminate_backend({backend})")
        until(lambda: _is_gone(scratch, backend), what="the backend has ended")

    event.listen(engine, "connect", end)
    for _ in range(3):
        with pytest.raises(OperationalError):
            _backend(engine)
    event.remove(engine, "connect", end)
    assert _backend(engine) > 0
    engine.dispose()


def test_a_session_that_postgresql_has_ended_is_away_by_whatever_name(server_url: str, scratch: Engine) -> None:
    engine = new_engine(f"{server_url}?options={quote('-c idle_in_transaction_session_timeout=1')}", pool_size=1)

    def ends_under_a_name_of_its_own() -> bool:
        with pytest.raises(DBAPIError) as caught, engine.begin() as connection:  # noqa: PT012
            backend = connection.exec_driver_sql("SELECT pg_backend_pid()").scalar_one()
            until(lambda: _is_gone(scratch, backend), what="the session has ended")
            connection.exec_driver_sql("SELECT 1")
        assert is_away(caught.value)
        return not isinstance(caught.value, OperationalError)

    # A farewell that is read together with the answer before it is a notice to libpq: then the end has the usual name.
    until(ends_under_a_name_of_its_own, what="PostgreSQL has said why, and psycopg has no name for an outage")
    engine.dispose()


def test_taking_a_connection_asks_the_server_nothing(server_url: str, monkeypatch: pytest.MonkeyPatch) -> None:
    engine = new_engine(server_url, pool_size=1)
    backend = _backend(engine)
    asked: list[object] = []
    monkeypatch.setattr(TimedConnection, "wait", lambda *arguments, **_: asked.append(arguments))
    with engine.connect():
        assert asked == []
    monkeypatch.undo()
    assert _backend(engine) == backend
    engine.dispose()


def test_what_a_thread_still_has_of_a_dropped_pool_is_closed_without_a_word(server_url: str, scratch: Engine) -> None:
    engine = new_engine(server_url, pool_size=1)
    connection = engine.connect()
    backend = connection.exec_driver_sql("SELECT pg_backend_pid()").scalar_one()
    engine.dispose()
    connection.close()
    del connection, engine
    gc.collect()  # Had it warned, this test would fail.
    until(lambda: _is_gone(scratch, backend), "the server has lost the session")


_WAIT_FOR_A_LOCK = """
import sys
from app.postgres.connections import new_engine
with new_engine(sys.argv[1], pool_size=1).begin() as connection:
    connection.exec_driver_sql("SELECT pg_advisory_xact_lock(4711)")
"""


def test_the_server_notices_that_a_process_which_waited_for_a_lock_was_killed(server_url: str, scratch: Engine) -> None:
    # Without any other limit, so that only the look after the client can end its wait.
    url = f"{server_url}?options={quote('-c lock_timeout=0 -c statement_timeout=0')}"
    with scratch.begin() as holder:
        holder.exec_driver_sql("SELECT pg_advisory_xact_lock(4711)")
        waiting = text("SELECT FROM pg_locks WHERE locktype = 'advisory' AND NOT granted")
        process = subprocess.Popen([sys.executable, "-c", _WAIT_FOR_A_LOCK, url])
        try:
            until(lambda: holder.execute(waiting).first() is not None, what="the process waits for the lock")
        finally:
            process.kill()
            process.wait()
        until(lambda: holder.execute(waiting).first() is None, what="the server lets go of the wait")
