"""What the unit tests share: the application's client, and a database that is only imagined."""

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from datetime import UTC, datetime
from typing import Any

import pytest
from fakeredis import FakeRedis, FakeServer
from flask.testing import FlaskClient

from app.api_keys import Caller
from app.batches.schedule import Scheduled
from app.organizations import OrganizationInMode
from app.web.application import create_app
from tests.unit import rows
from tests.unit.house import House

CALLER = Caller(
    api_key_id=1,
    sandbox=False,
    organization=OrganizationInMode(
        id=7,
        name="Acme",
        is_disabled=False,
        is_suspended=False,
        balance=100,
        last_refill=500,
        created_at=datetime(2026, 1, 31, 9, 30, tzinfo=UTC),
    ),
)


class _NoRows:
    """An engine, a connection and a result in one: every table is empty."""

    @contextmanager
    def begin(self) -> Iterator["_NoRows"]:
        yield self

    def connect(self) -> "_NoRows":
        return self

    @contextmanager
    def execution_options(self, **_: object) -> Iterator["_NoRows"]:
        yield self

    def execute(self, *_: object) -> "_NoRows":
        return self

    def one_or_none(self) -> None:
        return None


class Calling:
    """Whose key the requests of a test carry; a test changes what it is about."""

    def __init__(self) -> None:
        self.caller = CALLER

    def change(self, **changes: object) -> None:
        """Change some fields of the caller's organization."""
        self.caller = replace(self.caller, organization=replace(self.caller.organization, **changes))  # type: ignore[arg-type]


@pytest.fixture
def client() -> FlaskClient:
    """Give a test the application itself; its database is out of reach."""
    return create_app().test_client()


@pytest.fixture
def no_rows(monkeypatch: pytest.MonkeyPatch) -> None:
    """Give a test a database that answers, and in which there is nothing."""
    monkeypatch.setattr("app.postgres.database.engine", _NoRows)


@pytest.fixture
def calling(no_rows: None, monkeypatch: pytest.MonkeyPatch) -> Calling:
    """Let every key be known as the one of `CALLER`."""
    who = Calling()
    monkeypatch.setattr("app.api.auth.get_caller", lambda _connection, _hash: who.caller)
    nothing = Scheduled(batches=0, amount=0, next_at=None)
    monkeypatch.setattr("app.batches.schedule.scheduled_of", lambda _connection, _id, **_: nothing)
    return who


@pytest.fixture
def house(calling: Calling, monkeypatch: pytest.MonkeyPatch) -> House:
    """Put an imagined send path, and imagined rows, behind the view of send."""
    imagined = House(calling)
    monkeypatch.setattr("app.api.views.send.send_path", imagined)
    monkeypatch.setattr("app.batches.read.find_accepted", imagined.find_accepted)
    monkeypatch.setattr("app.batches.read.transactions_of", lambda _connection, _id: rows.issue().transactions)
    return imagined


@pytest.fixture
def redis(monkeypatch: pytest.MonkeyPatch) -> FakeServer:
    """Let the limits of a test be counted in one imagined Redis, whichever process counts."""
    server = FakeServer()

    def imagined(*_: object, **__: Any) -> FakeRedis:
        return FakeRedis(server=server)

    monkeypatch.setattr("app.api.limits.redis_client", imagined)
    return server
