"""`GET /readyz` on a real PostgreSQL: that it answers is not enough, its tables must be there."""

import pytest
from sqlalchemy import Engine

import migrations
from app.postgres.connections import engine
from app.values.keys import new_key
from app.web.application import create_app
from tests.conftest import forget_everything


@pytest.mark.usefixtures("broker")
def test_a_database_that_was_never_migrated_is_not_ready(
    server_url: str, scratch: Engine, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("DATABASE_URL", server_url)
    forget_everything()
    client = create_app().test_client()
    response = client.get("/readyz")
    told = {"postgresql": ["PostgreSQL answers, but has no tables yet: run `points migrate`."]}
    assert (response.status_code, response.get_json()["errors"]) == (503, told)
    key = {"Authorization": f"Bearer {new_key(sandbox=False).text}"}
    assert [client.get(path, headers=key).status_code for path in ("/v1/organization", "/v1/batches")] == [503, 503]
    sent = {"recipient": "ann@example.com", "amount": 1}
    assert client.post("/v1/points/send", headers=key, json=sent).status_code == 503
    migrations.upgrade(server_url)
    assert client.get("/readyz").status_code == 200
    engine().dispose()
