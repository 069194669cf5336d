"""An exchange: what is asked together is answered in order, fails together, and leaves the connection as it was."""

import os
import signal
import time
from collections.abc import Generator, Iterator
from datetime import UTC, datetime

import psycopg
import pytest
from psycopg.pq import PipelineStatus, TransactionStatus

from app.exchange import Answer, Exchange, Statement
from app.local.postgresql import PostgreSQL
from app.timed_connection import TimedConnection
from tests.deadline import until
from tests.integration import races

_ADD = Statement("INSERT INTO counted (number) VALUES (%(number)s) RETURNING number")
_COUNT = Statement("SELECT count(*) FROM counted")
_HALF = Statement("SELECT 1 / %(number)s::int")
_NAMES = "SELECT name FROM pg_prepared_statements WHERE name LIKE 'points%'"


@pytest.fixture
def connection(unmigrated: PostgreSQL, server_url: str) -> Iterator[TimedConnection]:
    with TimedConnection.connect(server_url, autocommit=True) as opened:
        opened.patience_s = 20
        opened.execute("CREATE TEMPORARY TABLE counted (number int UNIQUE)")
        yield opened


def _ask(connection: TimedConnection, *statements: Statement, **values: str | int | None) -> list[Answer]:
    with Exchange(connection) as exchange:
        return [exchange.ask(statement, **values) for statement in statements]


def _is_as_before(connection: TimedConnection) -> bool:
    pgconn = connection.pgconn
    return (pgconn.pipeline_status, pgconn.transaction_status) == (PipelineStatus.OFF, TransactionStatus.IDLE)


def test_each_statement_is_answered_by_its_own_rows_in_their_types(connection: TimedConnection) -> None:
    every_kind = Statement(
        "SELECT %(number)s::bigint, %(number)s::text, NULL::int, true, timestamptz '2026-11-22 12:00:00+02', %(word)s"
    )
    nothing = Statement("SELECT WHERE %(number)s::int > 0")
    with Exchange(connection) as exchange:
        first = exchange.ask(every_kind, number=2**40, word='it\'s "Zoë" \\ {x}')
        second = exchange.ask(nothing, number=1)
        third = exchange.ask(nothing, number=0)
        fourth = exchange.ask(every_kind, number=-1, word=None)
    when = datetime(2026, 11, 22, 10, tzinfo=UTC)
    assert first.rows == [(2**40, str(2**40), None, True, when, 'it\'s "Zoë" \\ {x}')]
    assert (second.rows, third.rows) == ([()], [])
    assert fourth.rows == [(-1, "-1", None, True, when, None)]


def test_more_than_a_socket_holds_goes_there_and_comes_back(connection: TimedConnection) -> None:
    repeat, long = Statement("SELECT %(word)s::text"), "Zoë " * 2_000_000
    answers = _ask(connection, repeat, repeat, word=long)
    assert [answer.rows for answer in answers] == [[(long,)]] * 2


def test_a_statement_is_prepared_once_and_asked_anew_with_other_values(connection: TimedConnection) -> None:
    for number in range(10):
        [added, counted] = _ask(connection, _ADD, _COUNT, number=number)
        assert (added.rows, counted.rows) == ([(number,)], [(number + 1,)])
    assert {name for (name,) in connection.execute(_NAMES)} == {_ADD.name.decode(), _COUNT.name.decode()}


def test_behind_a_pooler_nothing_is_prepared(connection: TimedConnection) -> None:
    connection.prepare_threshold = None
    for number in range(10):
        [added, counted] = _ask(connection, _ADD, _COUNT, number=number)
        assert (added.rows, counted.rows) == ([(number,)], [(number + 1,)])
    assert connection.execute(_NAMES).fetchall() == []


@pytest.mark.parametrize("statements_of_psycopg", [0, 10])  # So many that it has prepared one, or too few.
@pytest.mark.parametrize("undone", ["everything", "to a savepoint"])
def test_statements_are_prepared_anew_when_psycopg_has_had_all_of_them_forgotten_and_only_then(
    connection: TimedConnection, statements_of_psycopg: int, undone: str
) -> None:
    for _ in range(statements_of_psycopg):
        connection.execute("SELECT 1")
    connection.autocommit = False
    _ask(connection, _COUNT)
    connection.execute("SAVEPOINT here")
    if undone == "everything":
        connection.rollback()
    else:
        connection.execute("ROLLBACK TO here")
    [counted] = _ask(connection, _COUNT)
    assert counted.rows == [(0,)]


def test_a_statement_of_its_own_that_psycopg_has_forgotten_leaves_ours_prepared(connection: TimedConnection) -> None:
    _ask(connection, _COUNT)
    connection.prepare_threshold, connection.prepared_max = 0, 1
    for number in range(3):  # Of two, it keeps one.
        connection.execute(f"SELECT {number}".encode())
    [counted] = _ask(connection, _COUNT)
    assert counted.rows == [(0,)]


def test_statements_that_somebody_else_has_had_forgotten_fail_once_and_are_prepared_anew(
    connection: TimedConnection,
) -> None:
    _ask(connection, _COUNT)
    connection.execute("DEALLOCATE ALL")
    with pytest.raises(psycopg.errors.InvalidSqlStatementName):
        _ask(connection, _COUNT)
    [counted] = _ask(connection, _COUNT)
    assert counted.rows == [(0,)]


@pytest.mark.parametrize("prepared", [False, True])
def test_what_fails_says_why_undoes_what_came_before_and_keeps_what_comes_after_from_running(
    connection: TimedConnection, prepared: bool
) -> None:
    if prepared:
        _ask(connection, _ADD, _HALF, _COUNT, number=1)
    with pytest.raises(psycopg.errors.DivisionByZero), Exchange(connection) as exchange:  # noqa: PT012
        before = exchange.ask(_ADD, number=7)
        exchange.ask(_HALF, number=0)
        after = exchange.ask(_COUNT)
    assert before.rows == [(7,)]
    assert not hasattr(after, "rows")
    assert _is_as_before(connection)
    [counted] = _ask(connection, _COUNT)
    assert counted.rows == [(int(prepared),)]


def test_the_first_of_many_mistakes_is_told(connection: TimedConnection) -> None:
    with pytest.raises(psycopg.errors.UndefinedTable, match="never"), Exchange(connection) as exchange:  # noqa: PT012
        exchange.ask(Statement("SELECT FROM never"))
        exchange.ask(_HALF, number=0)
    assert _is_as_before(connection)


def test_a_transaction_that_a_mistake_leaves_open_is_undone_by_psycopg(connection: TimedConnection) -> None:
    with pytest.raises(psycopg.errors.DivisionByZero), Exchange(connection) as exchange:  # noqa: PT012
        exchange.ask(Statement("BEGIN"))
        exchange.ask(_ADD, number=1)
        exchange.ask(_HALF, number=0)
        exchange.ask(Statement("COMMIT"))
    assert connection.pgconn.transaction_status == TransactionStatus.INERROR
    connection.rollback()
    [counted] = _ask(connection, _COUNT)
    assert counted.rows == [(0,)]


def test_nothing_is_asked_when_the_block_fails_or_a_value_cannot_be_sent(connection: TimedConnection) -> None:
    with pytest.raises(RuntimeError), Exchange(connection) as exchange:  # noqa: PT012
        exchange.ask(_ADD, number=1)
        raise RuntimeError
    with pytest.raises(psycopg.DataError, match="NUL"), Exchange(connection) as exchange:  # noqa: PT012
        exchange.ask(_ADD, number=2)
        exchange.ask(Statement("SELECT %(word)s::text"), word="a\0b")
    assert _is_as_before(connection)
    assert connection.execute("SELECT count(*) FROM counted").fetchone() == (0,)


def test_what_was_sent_before_its_end_is_run_meanwhile_and_answered_at_the_end(connection: TimedConnection) -> None:
    with Exchange(connection) as exchange:
        lock = exchange.ask(Statement("SELECT pg_advisory_xact_lock(%(number)s::bigint)"), number=4711)
        exchange.send()
        with psycopg.connect(connection.info.dsn, password=connection.info.password, autocommit=True) as other:
            deadline = time.monotonic() + 30
            while other.execute("SELECT pg_try_advisory_xact_lock(4711)").fetchone() == (True,):
                assert time.monotonic() < deadline, "it holds the lock, once it has been sent"
        counted = exchange.ask(_COUNT)
    assert (len(lock.rows), counted.rows) == (1, [(0,)])


def test_what_was_sent_before_the_block_failed_is_run_and_what_was_not_is_not(connection: TimedConnection) -> None:
    with pytest.raises(RuntimeError), Exchange(connection) as exchange:  # noqa: PT012
        exchange.ask(_ADD, number=1)
        exchange.send()
        exchange.ask(_ADD, number=2)
        raise RuntimeError
    assert _is_as_before(connection)
    assert connection.execute("SELECT number FROM counted").fetchall() == [(1,)]


@pytest.fixture
def checked_at_commit(connection: TimedConnection) -> str:
    """Have a row's reference looked up when it is committed, and not before; return the statement that adds one."""
    connection.execute("CREATE TEMPORARY TABLE referring (to_number int REFERENCES counted (number) DEFERRABLE)")
    connection.execute("ALTER TABLE referring ALTER CONSTRAINT referring_to_number_fkey DEFERRABLE INITIALLY DEFERRED")
    return "INSERT INTO referring (to_number) VALUES (%(number)s) RETURNING to_number"


def test_what_is_done_meanwhile_is_done_before_postgresql_has_answered_or_committed(
    connection: TimedConnection, server_url: str
) -> None:
    connection.execute("CREATE TABLE public.seen (number int)")
    count = "SELECT count(*) FROM public.seen"
    found = []
    try:
        with races.at_commit(connection.execute, "public.seen", do=races.WAIT), psycopg.connect(server_url) as other:

            def look() -> None:
                found.append((hasattr(added, "rows"), other.execute(count).fetchone()))
                other.rollback()  # Only now is the lock free that the commit waits for.

            other.execute(f"SELECT pg_advisory_xact_lock({races.HOLDS_COMMITS})")
            with Exchange(connection) as exchange:
                added = exchange.ask(
                    Statement("INSERT INTO public.seen VALUES (%(number)s) RETURNING number"), number=7
                )
                exchange.meanwhile(look)
            assert (found, added.rows) == ([(False, (0,))], [(7,)])
            assert other.execute(count).fetchone() == (1,)
            other.rollback()
        assert _is_as_before(connection)
    finally:
        connection.execute("DROP TABLE public.seen")


def test_however_long_a_statement_is_all_of_it_has_gone_before_something_is_done_meanwhile(
    connection: TimedConnection, server_url: str
) -> None:
    connection.execute("CREATE TABLE public.seen (length int)")
    look = "SELECT length FROM public.seen"
    try:
        with psycopg.connect(server_url, autocommit=True) as other, Exchange(connection) as exchange:
            exchange.ask(Statement("INSERT INTO public.seen VALUES (length(%(word)s))"), word="x" * 20_000_000)
            exchange.meanwhile(
                lambda: until(lambda: other.execute(look).fetchone() == (20_000_000,), what="PostgreSQL has committed")
            )
    finally:
        connection.execute("DROP TABLE public.seen")


def test_it_is_done_also_where_a_statement_fails_but_not_where_the_block_does(connection: TimedConnection) -> None:
    done: list[str] = []
    with pytest.raises(psycopg.errors.DivisionByZero), Exchange(connection) as exchange:  # noqa: PT012
        exchange.meanwhile(lambda: done.append("a statement failed"))
        exchange.ask(_ADD, number=1)
        exchange.ask(_HALF, number=0)
    with pytest.raises(RuntimeError), Exchange(connection) as exchange:  # noqa: PT012
        exchange.meanwhile(lambda: done.append("the block failed"))
        exchange.ask(_ADD, number=1)
        exchange.send()
        raise RuntimeError
    assert done == ["a statement failed"]
    assert _is_as_before(connection)


@pytest.mark.parametrize("meanwhile", [False, True])
def test_a_commit_that_fails_says_why_and_leaves_the_connection_as_it_was(
    connection: TimedConnection, checked_at_commit: str, *, meanwhile: bool
) -> None:
    done: list[str] = []
    with pytest.raises(psycopg.errors.ForeignKeyViolation), Exchange(connection) as exchange:  # noqa: PT012
        exchange.ask(Statement(checked_at_commit), number=7)
        if meanwhile:
            exchange.meanwhile(lambda: done.append("meanwhile"))
    assert done == ["meanwhile"] * meanwhile
    assert _is_as_before(connection)
    [counted] = _ask(connection, Statement("SELECT count(*) FROM referring"))
    assert counted.rows == [(0,)]


def test_what_fails_meanwhile_closes_the_connection_that_was_not_read(
    connection: TimedConnection,
) -> None:
    def fail() -> None:
        raise RuntimeError

    with pytest.raises(RuntimeError), Exchange(connection) as exchange:  # noqa: PT012
        exchange.ask(_ADD, number=1)
        exchange.meanwhile(fail)
    assert connection.closed


def test_what_is_done_meanwhile_may_take_longer_than_postgresql_may(connection: TimedConnection) -> None:
    connection.patience_s = 0.2
    with Exchange(connection) as exchange:
        added = exchange.ask(_ADD, number=1)
        exchange.meanwhile(lambda: time.sleep(0.5))
    assert added.rows == [(1,)]


def test_a_connection_that_is_lost_meanwhile_is_closed_and_says_so(connection: TimedConnection) -> None:
    with pytest.raises(psycopg.OperationalError):
        _ask(connection, Statement("SELECT pg_terminate_backend(pg_backend_pid())"), _COUNT)
    assert connection.closed
    with pytest.raises(psycopg.OperationalError):
        _ask(connection, _COUNT)


def test_a_connection_that_ends_before_everything_is_answered_is_not_waited_for(
    connection: TimedConnection, monkeypatch: pytest.MonkeyPatch
) -> None:
    def nothing(_: object) -> Generator[None, None, list[object]]:
        yield from ()
        return []  # As libpq answers on a connection that is gone.

    monkeypatch.setattr("app.exchange.generators.fetch_many", nothing)
    with pytest.raises(psycopg.OperationalError, match="gone before"):
        _ask(connection, _COUNT)
    assert connection.closed


def test_a_server_that_does_not_answer_is_given_up(connection: TimedConnection) -> None:
    connection.patience_s = 0.3
    backend = connection.info.backend_pid
    os.kill(backend, signal.SIGSTOP)
    try:
        with pytest.raises(psycopg.OperationalError, match=r"not answered within 0\.3 s"):
            _ask(connection, _COUNT)
    finally:
        os.kill(backend, signal.SIGCONT)
    assert connection.closed


def test_whoever_is_interrupted_while_it_waits_leaves_no_answer_behind(connection: TimedConnection) -> None:
    class Interrupted(BaseException):
        pass

    def interrupt(*_: object) -> None:
        raise Interrupted

    before = signal.signal(signal.SIGALRM, interrupt)
    signal.setitimer(signal.ITIMER_REAL, 0.2)
    try:
        with pytest.raises(Interrupted):
            _ask(connection, Statement("SELECT pg_sleep(20)"))
    finally:
        signal.signal(signal.SIGALRM, before)
    assert connection.closed
