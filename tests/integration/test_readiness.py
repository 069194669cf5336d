"""`GET /readyz` on a real PostgreSQL: that it answers is not enough, its tables must be there."""

import pytest
from sqlalchemy import Engine

import migrations
from app.api import create_app
from app.connections import engine
from tests.conftest import forget_everything


@pytest.mark.usefixtures("broker")
def test_a_database_that_was_never_migrated_is_not_ready(
    server_url: str, scratch: Engine, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("DATABASE_URL", server_url)
    forget_everything()
    client = create_app().test_client()
    response = client.get("/readyz")
    assert (response.status_code, set(response.get_json()["errors"])) == (503, {"postgresql"})
    migrations.upgrade(server_url)
    assert client.get("/readyz").status_code == 200
    engine().dispose()
