"""What the unit tests share: the application's client, and an organization as a caller's key shows it."""

from datetime import UTC, datetime

import pytest
from flask.testing import FlaskClient

from app.api_keys import Caller
from app.organizations import OrganizationInMode
from app.web.application import create_app

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
