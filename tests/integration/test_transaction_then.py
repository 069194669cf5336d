"""A transaction that commits and looks in one message: all or nothing, and the look comes after."""

import pytest
from sqlalchemy import text
from sqlalchemy.exc import DBAPIError, OperationalError

from app.database import transaction, transaction_then
from app.exchange import Statement
from app.ledger.issue import drain_lock
from tests.crash.proxy import Proxy
from tests.deadline import until
from tests.integration import books, races

pytestmark = pytest.mark.usefixtures("database")

# Finds a row when nobody holds the lock of organization 1's drain; and then holds it, to the end of its transaction.
_OWN = Statement("SELECT WHERE pg_try_advisory_xact_lock(%(drain)s::bigint)")
_DRAIN = drain_lock(1)
_RENAME = Statement("UPDATE organizations SET name = %(name)s")


def _names() -> list[str]:
    with transaction() as connection:
        return list(connection.execute(text("SELECT name FROM organizations")).scalars())


def _fail_inside() -> None:
    with transaction_then(_OWN, drain=_DRAIN) as (exchange, _):
        exchange.ask(_OWN, drain=_DRAIN)
        exchange.ask(_RENAME, name="Other")
        exchange.send()
        races.until_owned()
        raise RuntimeError


def test_what_was_asked_is_committed_and_its_locks_are_gone_when_the_look_is_made() -> None:
    books.make_organization()
    with transaction_then(_OWN, drain=_DRAIN) as (exchange, look):
        owning = exchange.ask(_OWN, drain=_DRAIN)
        exchange.ask(_RENAME, name="Other")
        exchange.send()
        races.until_owned()
        assert _names() == ["Acme"]
    assert owning.rows == [()]
    assert look.found
    assert _names() == ["Other"]


def test_the_look_sees_a_lock_that_another_holds() -> None:
    with transaction() as other:
        assert races.own_drain(other, 1)
        with transaction_then(_OWN, drain=_DRAIN) as (_, look):
            pass
    assert not look.found


def test_an_exception_undoes_everything_frees_the_locks_and_leaves_the_connection_usable() -> None:
    books.make_organization()
    for _ in range(20):  # More often than there are connections.
        with pytest.raises(RuntimeError):
            _fail_inside()
        with transaction_then(_OWN, drain=_DRAIN) as (_, look):
            pass
        assert look.found
    assert _names() == ["Acme"]


@pytest.mark.parametrize("place", ["before", "after"])
def test_a_mistake_that_nobody_has_read_is_raised_at_the_end_and_commits_nothing(place: str) -> None:
    books.make_organization()
    with pytest.raises(DBAPIError) as raised, transaction_then(_OWN, drain=_DRAIN) as (exchange, look):  # noqa: PT012
        if place == "after":
            exchange.ask(_RENAME, name="Other")
        exchange.ask(_RENAME, name=None)
        if place == "before":
            exchange.ask(_RENAME, name="Other")
    assert "not-null" in str(raised.value.orig)
    assert not hasattr(look, "found")
    assert _names() == ["Acme"]
    with transaction() as other:
        assert races.own_drain(other, 1)


@pytest.mark.parametrize("calls_before", [0, 20])  # At first each statement is still to be prepared.
@pytest.mark.parametrize(("cut", "name"), [("cut_commit", "Acme"), ("cut_answer", "Other")])
def test_a_commit_that_is_lost_is_none_and_one_whose_answer_is_lost_is_one(
    cut: str, name: str, calls_before: int, postgresql_proxy: Proxy
) -> None:
    books.make_organization()
    for _ in range(calls_before):
        with transaction_then(_OWN, drain=_DRAIN) as (exchange, look):
            exchange.ask(_RENAME, name="Acme")
        assert look.found
    postgresql_proxy.tell(cut, 1)
    with pytest.raises(OperationalError), transaction_then(_OWN, drain=_DRAIN) as (exchange, _):  # noqa: PT012
        exchange.ask(_OWN, drain=_DRAIN)
        exchange.ask(_RENAME, name="Other")
    assert postgresql_proxy.tell("forward") == 1
    until(lambda: _names() == [name] and _is_free(), what=f"it is {name}")


def _is_free() -> bool:
    with transaction() as connection:
        return races.own_drain(connection, 1)
