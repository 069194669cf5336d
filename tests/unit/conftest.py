"""What the unit tests share: the application's client, and an organization as a caller's key shows it."""

from collections.abc import Iterator
from datetime import UTC, datetime

import pytest
from flask.testing import FlaskClient

from app.api_keys import Caller
from app.organizations import OrganizationInMode
from app.web.application import create_app
from tests.unit.paying_front import PayingFront, paying_front

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


@pytest.fixture
def client() -> FlaskClient:
    """Give a test the application itself; its database is out of reach."""
    return create_app().test_client()


@pytest.fixture(scope="module")
def _paying() -> Iterator[PayingFront]:
    with paying_front() as running:
        yield running


@pytest.fixture
def front(_paying: PayingFront) -> PayingFront:
    """Give a test of `points send` a service that remembers whom it paid, and so far nobody."""
    _paying.forget()
    return _paying
