"""Races on purpose: calls that start in one moment, and how to see that somebody waits for a lock."""

import threading
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import contextmanager
from typing import TypeVar

import pytest
from sqlalchemy import Connection, event, text

from app.postgres import locks
from app.postgres.connections import engine
from app.postgres.database import transaction
from tests.deadline import TIMEOUT_S, until
from tests.integration import books

_T = TypeVar("_T")


def first_of(name: str, values: Iterable[object]) -> pytest.MarkDecorator:
    """Take the first value in each run, and the others, of which each is a further try, in the long one."""
    first, *more = values
    return pytest.mark.parametrize(name, [first, *(pytest.param(value, marks=pytest.mark.long) for value in more)])


def at_once(*calls: Callable[[], _T]) -> list[_T]:
    """Make each call in a thread of its own, all started together; return what they return, in order."""
    barrier = threading.Barrier(len(calls))

    def after_the_barrier(call: Callable[[], _T]) -> _T:
        barrier.wait(TIMEOUT_S)
        return call()

    with ThreadPoolExecutor(len(calls)) as pool:
        futures = [pool.submit(after_the_barrier, call) for call in calls]
        return [future.result(TIMEOUT_S) for future in futures]


@contextmanager
def started() -> Iterator[Callable[[Callable[[], _T]], Future[_T]]]:
    """Yield a function that starts a call in the background.

    Enter it before the transaction that the call will wait for: the block's end waits for the call.
    """
    with ThreadPoolExecutor(4) as pool:
        yield pool.submit


def behind(hold: Callable[[Connection], object], call: Callable[[], _T]) -> _T:
    """Make a call that waits for what a transaction holds, and return what it returns once that has committed."""
    with started() as start:
        with transaction() as connection:
            hold(connection)
            waiting_call = start(call)
            until_waiting()
        return waiting_call.result(TIMEOUT_S)


@contextmanager
def before_statement(words: str, call: Callable[[], object]) -> Iterator[None]:
    """Make a call just before a statement with these words is sent, once, from within whoever sends it."""
    pending = [call]

    def look(_connection: object, _cursor: object, statement: str, *_: object) -> None:
        if words in statement and pending:
            pending.pop()()

    event.listen(engine(), "before_cursor_execute", look)
    yield
    event.remove(engine(), "before_cursor_execute", look)
    assert not pending, f"nobody has sent {words}"


def until_waiting(count: int = 1) -> None:
    """Wait until this many connections wait for a lock that another one holds."""
    until(lambda: len(waiting()) == count, what=f"{count} connections wait for a lock")


def waiting() -> set[int]:
    """Return the ids of the PostgreSQL processes that wait for a lock that another one holds."""
    return set(books.values(_WAITING))


_WAITING = text("""
    SELECT pid FROM pg_stat_activity WHERE datname = current_database() AND wait_event_type = 'Lock'
""")


@contextmanager
def at_commit(execute: Callable[[str], object], table: str, *, do: str) -> Iterator[None]:
    """Have whoever commits a new row of a table do this first (a statement of PL/pgSQL), until the block ends."""
    execute(f"""
        CREATE FUNCTION at_commit() RETURNS trigger LANGUAGE plpgsql AS
        $$ BEGIN {do}; RETURN NULL; END $$
    """)
    execute(f"""
        CREATE CONSTRAINT TRIGGER at_commit AFTER INSERT ON {table} DEFERRABLE INITIALLY DEFERRED
        FOR EACH ROW EXECUTE FUNCTION at_commit()
    """)
    try:
        yield
    finally:
        execute("DROP FUNCTION at_commit CASCADE")


def own_drain(connection: Connection, organization_id: int) -> bool:
    """Try to become the owner of an organization's drain, as a worker does, until the transaction ends."""
    return locks.try_to_take(connection, locks.Kind.DRAIN, organization_id)
