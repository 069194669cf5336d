"""Bare connections: statements that each commit, errors of one family, and a pool that finds them as they were."""

import psycopg
import pytest
from sqlalchemy import text
from sqlalchemy.exc import DBAPIError, OperationalError

from app.database import AnyConnection, bare_connection, is_away, single_statement, together, transaction
from app.exchange import Statement
from tests.conftest import forget_everything
from tests.integration import books


@pytest.fixture(autouse=True)
def one_connection(database: None, monkeypatch: pytest.MonkeyPatch) -> None:
    """Have every call of a test use the same connection of the pool, or notice that it is gone."""
    monkeypatch.setenv("POINTS_DATABASE_CONNECTIONS_MAX", "1")
    forget_everything()
    books.make_organization()


def _run(connection: AnyConnection, *statements: str) -> None:
    with together(connection) as exchange:
        for statement in statements:
            exchange.ask(Statement(statement))


def _name() -> str:
    with transaction() as connection:
        return str(connection.execute(text("SELECT name FROM organizations")).scalar_one())


def _fail_in_a_transaction() -> None:
    with transaction() as connection:
        connection.execute(text("UPDATE organizations SET name = 'Never'"))
        raise RuntimeError


def test_what_is_asked_together_is_committed_by_itself() -> None:
    with pytest.raises(RuntimeError), bare_connection() as connection:  # noqa: PT012
        _run(connection, "UPDATE organizations SET name = 'Other'")
        raise RuntimeError
    assert _name() == "Other"


def test_on_a_connection_of_single_statements_too_and_no_transaction_is_left_open() -> None:
    with single_statement() as connection:
        _run(connection, "UPDATE organizations SET name = 'Other'")
    assert _name() == "Other"


def test_what_is_asked_together_is_undone_together() -> None:
    with pytest.raises(DBAPIError), bare_connection() as connection:
        _run(connection, "UPDATE organizations SET name = 'Other'", "UPDATE organizations SET name = NULL", "SELECT 1")
    assert _name() == "Acme"


def test_what_an_exception_leaves_open_is_undone() -> None:
    with pytest.raises(RuntimeError), bare_connection() as connection:  # noqa: PT012
        _run(connection, "BEGIN")
        _run(connection, "UPDATE organizations SET name = 'Other'")
        raise RuntimeError
    assert _name() == "Acme"


def test_the_next_user_of_the_connection_has_transactions_again() -> None:
    for _ in range(3):
        with bare_connection() as connection:
            _run(connection, "SELECT 1")
        with pytest.raises(RuntimeError):
            _fail_in_a_transaction()
        assert _name() == "Acme"


def test_a_mistake_is_sqlalchemys_error_and_no_outage() -> None:
    with pytest.raises(DBAPIError) as caught, bare_connection() as connection:
        _run(connection, "UPDATE organizations SET name = NULL")
    assert not is_away(caught.value)
    assert _name() == "Acme"


def test_a_connection_that_is_lost_is_replaced_each_time() -> None:
    for _ in range(3):
        with pytest.raises(DBAPIError) as caught, bare_connection() as connection:
            _run(connection, "SELECT pg_terminate_backend(pg_backend_pid())")
        assert is_away(caught.value)
        with bare_connection() as connection:
            _run(connection, "UPDATE organizations SET name = 'Acme'")
        assert _name() == "Acme"


@pytest.mark.parametrize("code", ["25006", "25P03", "25P04"])
def test_what_psycopg_counts_to_no_outages_is_one_all_the_same(code: str) -> None:
    error = psycopg.errors.lookup(code)("its last words")
    assert is_away(DBAPIError.instance(None, None, error, psycopg.Error))


def test_a_server_that_nobody_answers_for_is_away(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("DATABASE_URL", "postgresql://nobody@127.0.0.1:1/none")
    forget_everything()
    with pytest.raises(OperationalError) as caught, bare_connection():
        pass
    assert is_away(caught.value)
