"""Lost connections: an outage counts no failure against a batch, and a batch that loses each one is put aside."""

from collections.abc import Callable, Iterator, MutableMapping
from contextlib import contextmanager
from datetime import datetime
from typing import Any

import pytest
from sqlalchemy import Connection, text
from sqlalchemy.exc import OperationalError

from app.ledger import issue
from app.ledger.drain import _LOSSES_MAX
from app.postgres.database import transaction
from tests.crash.proxy import Proxy
from tests.integration import books, races

pytestmark = pytest.mark.usefixtures("database")

ANN, MALLORY = "ann@example.com", "mallory@example.com"


def _failures_and_retry_at(batch_id: int) -> tuple[int, datetime | None]:
    with transaction() as connection:
        statement = text("SELECT failures, retry_at FROM batches WHERE id = :id")
        failures, retry_at = connection.execute(statement, {"id": batch_id}).one()
        return failures, retry_at


def _lose_connections(monkeypatch: pytest.MonkeyPatch, *, times: int, then: Callable[[], object]) -> None:
    """Have so many drains lose their connection just before they write; do something before the last of them does."""
    write: Any = issue._decide_and_write
    lost: list[None] = []

    def lose_and_write(connection: Connection, *arguments: object) -> object:
        if len(lost) < times:
            lost.append(None)
            if len(lost) == times:
                then()
            connection.exec_driver_sql("SELECT pg_terminate_backend(pg_backend_pid())")
        return write(connection, *arguments)

    monkeypatch.setattr(issue, "_decide_and_write", lose_and_write)


# The whole drain loses one, and its batch, tried alone, all but the last.
@races.first_of("times", range(_LOSSES_MAX, 0, -1))
def test_a_drain_that_loses_connections_counts_no_failure(monkeypatch: pytest.MonkeyPatch, times: int) -> None:
    organization_id = books.make_organization(100)
    batch_id = books.queue_batch(organization_id, [ANN], 10)
    _lose_connections(monkeypatch, times=times, then=lambda: None)
    assert books.drain_all(organization_id) == [batch_id]
    assert _failures_and_retry_at(batch_id) == (0, None)
    assert books.balance_of(organization_id) == 90
    assert books.breaches() == []


@races.first_of("times", range(_LOSSES_MAX + 1, 0, -1))
def test_an_outage_counts_no_failure_however_many_connections_were_lost_before_none_could_be_made(
    monkeypatch: pytest.MonkeyPatch, postgresql_proxy: Proxy, times: int
) -> None:
    organization_id = books.make_organization(100)
    batch_id = books.queue_batch(organization_id, [ANN], 10)
    _lose_connections(monkeypatch, times=times, then=lambda: postgresql_proxy.tell("refuse"))
    with pytest.raises(OperationalError):
        books.drain_all(organization_id)
    postgresql_proxy.tell("forward")
    assert _failures_and_retry_at(batch_id) == (0, None)
    assert books.drain_all(organization_id) == [batch_id]


@contextmanager
def _ending_the_session() -> Iterator[None]:
    """Have PostgreSQL end each session that writes a transaction for MALLORY."""
    books.execute(
        "CREATE FUNCTION end_session() RETURNS trigger LANGUAGE plpgsql AS"
        " $$ BEGIN PERFORM pg_terminate_backend(pg_backend_pid()); PERFORM pg_sleep(30); RETURN NEW; END $$",
        "CREATE TRIGGER end_session BEFORE INSERT ON transactions"
        f" FOR EACH ROW WHEN (NEW.email = '{MALLORY}') EXECUTE FUNCTION end_session()",
    )
    try:
        yield
    finally:
        books.execute("DROP TRIGGER end_session ON transactions", "DROP FUNCTION end_session")


@races.first_of("place", [5, 0, 10])
def test_a_batch_that_ends_the_session_is_put_aside(place: int, events: list[MutableMapping[str, Any]]) -> None:
    organization_id = books.make_organization(1_000)
    with _ending_the_session():
        queued = [books.queue_batch(organization_id, [MALLORY if n == place else ANN], 10) for n in range(11)]
        batch_id = queued.pop(place)
        assert books.drain_all(organization_id) == queued
        assert _failures_and_retry_at(batch_id)[0] == 1
    [postponed] = [event for event in events if event["event"] == "batch_postponed"]
    assert (postponed["batch_id"], postponed["sqlstate"]) == (batch_id, "57P01")
    books.execute("UPDATE batches SET retry_at = clock_timestamp() WHERE status = 'queued'")
    assert books.drain_all(organization_id) == [batch_id]
    assert books.balance_of(organization_id) == 890
    assert books.breaches() == []
