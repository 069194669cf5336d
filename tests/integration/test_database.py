"""The ways to PostgreSQL: what is committed and when, errors of one family, and a pool that stays good."""

import os
import signal
from collections.abc import Callable
from contextlib import AbstractContextManager

import psycopg
import pytest
from sqlalchemy import Connection, text
from sqlalchemy.exc import DBAPIError, OperationalError

from app.postgres import connections
from app.postgres.database import fetch_all, is_away, single_statement, transaction
from tests.conftest import forget_everything
from tests.integration import books

Run = Callable[[Connection, str], object]

_RENAME = "UPDATE organizations SET name = 'Other' RETURNING id"
_BREAK = "UPDATE organizations SET name = NULL RETURNING id"
_END = "SELECT pg_terminate_backend(pg_backend_pid())"


def _by_psycopg(connection: Connection, statement: str) -> object:
    return fetch_all(connection, statement.encode(), {})


def _by_sqlalchemy(connection: Connection, statement: str) -> object:
    return connection.execute(text(statement)).all()


either_way = pytest.mark.parametrize("run", [_by_psycopg, _by_sqlalchemy])


@pytest.fixture(autouse=True)
def one_connection(database: None, monkeypatch: pytest.MonkeyPatch) -> None:
    """Have every call of a test use the same connection of the pool, or notice that it is gone."""
    monkeypatch.setenv("POINTS_DATABASE_CONNECTIONS_MAX", "1")
    forget_everything()
    books.make_organization()


def _name() -> str:
    return str(books.value("SELECT name FROM organizations"))


@either_way
def test_a_single_statement_is_committed_by_itself(run: Run) -> None:
    with pytest.raises(RuntimeError), single_statement() as connection:  # noqa: PT012
        run(connection, _RENAME)
        raise RuntimeError
    assert _name() == "Other"


@either_way
def test_what_a_transaction_has_run_is_committed_at_its_end_or_undone(run: Run) -> None:
    with pytest.raises(RuntimeError), transaction() as connection:  # noqa: PT012
        run(connection, _RENAME)
        raise RuntimeError
    assert _name() == "Acme"
    books.run(run, _RENAME)
    assert _name() == "Other"


@either_way
def test_after_single_statements_the_next_user_of_the_connection_has_transactions_again(run: Run) -> None:
    for _ in range(3):
        with single_statement() as connection:
            run(connection, "SELECT 1")
        with pytest.raises(RuntimeError), transaction() as connection:  # noqa: PT012
            run(connection, _RENAME)
            raise RuntimeError
        assert _name() == "Acme"


@either_way
def test_a_mistake_is_no_outage_and_undoes_its_transaction(run: Run) -> None:
    for _ in range(3):
        with pytest.raises(DBAPIError) as caught, transaction() as connection:  # noqa: PT012
            run(connection, _RENAME)
            run(connection, _BREAK)
        assert "not-null" in str(caught.value)
        assert not is_away(caught.value)
        assert _name() == "Acme"


@either_way
@pytest.mark.parametrize("opened", [single_statement, transaction])
def test_a_connection_that_is_lost_is_told_apart_and_replaced(
    opened: Callable[[], AbstractContextManager[Connection]], run: Run
) -> None:
    for _ in range(3):
        with pytest.raises(DBAPIError) as caught, opened() as connection:
            run(connection, _END)
        assert caught.value.connection_invalidated
        assert is_away(caught.value)
        assert _name() == "Acme"


@either_way
def test_a_silent_server_is_given_up_and_the_next_call_works(monkeypatch: pytest.MonkeyPatch, run: Run) -> None:
    monkeypatch.setattr(connections, "_answer_timeout_s", 0.3)
    with single_statement() as connection:
        backend = connection.exec_driver_sql("SELECT pg_backend_pid()").scalar_one()
        os.kill(backend, signal.SIGSTOP)
        try:
            with pytest.raises(OperationalError, match=r"not answered within 0\.3 s") as caught:
                run(connection, "SELECT 1")
        finally:
            os.kill(backend, signal.SIGCONT)
    assert caught.value.connection_invalidated
    monkeypatch.undo()
    assert _name() == "Acme"


@either_way
def test_whoever_is_interrupted_while_it_waits_leaves_no_answer_behind(run: Run) -> None:
    class Interrupted(BaseException):
        pass

    def interrupt(*_: object) -> None:
        raise Interrupted

    before = signal.signal(signal.SIGALRM, interrupt)
    signal.setitimer(signal.ITIMER_REAL, 0.2)
    try:
        with pytest.raises(Interrupted), single_statement() as connection:
            run(connection, "SELECT 'late' FROM pg_sleep(20)")
    finally:
        signal.signal(signal.SIGALRM, before)
    assert _name() == "Acme"


@pytest.mark.parametrize("code", ["25006", "25P03", "25P04", "42P01"])
def test_what_psycopg_does_not_count_as_an_outage_is_one_all_the_same(code: str) -> None:
    error = psycopg.errors.lookup(code)("why the session has ended")
    assert is_away(DBAPIError.instance(None, None, error, psycopg.Error))


def test_a_server_that_nobody_answers_for_is_away(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("DATABASE_URL", "postgresql://nobody@127.0.0.1:1/none")
    forget_everything()
    with pytest.raises(OperationalError) as caught, single_statement():
        pass
    assert is_away(caught.value)


_PREPARED = "SELECT count(*) FROM pg_prepared_statements"


def test_what_every_send_runs_is_prepared_at_its_first_use_and_again_after_a_rollback() -> None:
    for _ in range(3):
        with pytest.raises(RuntimeError), transaction() as connection:  # noqa: PT012
            for number in range(3):
                assert fetch_all(connection, b"SELECT %(number)s::bigint", {"number": number}) == [(number,)]
            assert connection.exec_driver_sql(_PREPARED).scalar_one() == 1
            raise RuntimeError  # psycopg has the server forget what it has prepared.


def test_rows_come_in_their_types_also_when_they_are_many_and_long() -> None:
    long = "Zoë " * 500_000
    statement = b"SELECT n, %(word)s::text, NULL::int, n = 1, timestamptz 'epoch' FROM generate_series(1, 2) AS n"
    with single_statement() as connection:
        text_rows = fetch_all(connection, statement, {"word": long})
        assert text_rows == fetch_all(connection, statement, {"word": long}, binary=True)
    assert [row[:4] for row in text_rows] == [(1, long, None, True), (2, long, None, False)]
    assert text_rows[0][4].timestamp() == 0


def test_a_text_with_a_nul_is_refused_and_no_outage() -> None:
    with pytest.raises(DBAPIError) as caught, single_statement() as connection:
        fetch_all(connection, b"SELECT %(word)s::text", {"word": "a\0b"})
    assert not is_away(caught.value)
    assert _name() == "Acme"
