"""A database whose own settings are all other than the service's: it works all the same, or a sentence says why not."""

import re
import subprocess
from collections.abc import Iterator
from pathlib import Path

import httpx
import pytest
from click.testing import CliRunner
from sqlalchemy import text

from app.cli.users import users
from app.local import ports
from app.postgres.connections import new_engine, session_settings
from app.web.application import create_app
from tests.conftest import Servers, forget_everything
from tests.integration import books
from tests.operations.pooler import pooler
from tests.ports import free_port
from tests.service.deployment import Deployment, deployment
from tests.service.template import POINTS

pytestmark = [pytest.mark.usefixtures("broker", "database"), pytest.mark.long]

# What the service sets itself, then what nothing of it may depend on.
_CONTRARY = {
    "datestyle": "German, DMY",
    "intervalstyle": "sql_standard",
    "timezone": "Asia/Kathmandu",
    "array_nulls": "off",
    "standard_conforming_strings": "off",
    "search_path": "elsewhere",
    "default_transaction_isolation": "serializable",
    "bytea_output": "escape",
    "extra_float_digits": "-15",
}
_ONLY_WISHED_FOR = [
    "client_connection_check_interval",
    "enable_seqscan",
    "idle_in_transaction_session_timeout",
    "jit",
    "lock_timeout",
    "statement_timeout",
]


@pytest.fixture
def contrary(database: None) -> Iterator[None]:
    """Let the database itself set what is contrary to the service, and nobody's role anything."""
    for name, value in _CONTRARY.items():
        books.execute(f"ALTER DATABASE points SET {name} = {value!r}")
    yield
    books.execute("ALTER DATABASE points RESET ALL")
    books.execute("ALTER ROLE points IN DATABASE points RESET ALL")


@pytest.mark.usefixtures("contrary")
def test_the_service_works_directly_and_behind_a_pooler_that_sets_it_all(servers: Servers, tmp_path: Path) -> None:
    with deployment(tmp_path / "direct") as parts:
        _works(parts)
        assert parts.points("status")["settings_missing"] == []
    with pooler(servers, tmp_path) as url:
        pooled = new_engine(url, pool_size=1, pooler=True)
        with pooled.begin() as connection:
            query = text("SELECT name, setting FROM pg_settings WHERE lower(name) = ANY(:names)")
            shown = connection.execute(query, {"names": list(session_settings())}).all()
        pooled.dispose()
    assert {row.name.lower(): row.setting for row in shown} == session_settings()


@pytest.mark.usefixtures("contrary")
def test_behind_a_pooler_that_sets_nothing_one_sentence_after_the_other_mends_it(
    servers: Servers, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name in ("datestyle", "array_nulls", "default_transaction_isolation", "search_path"):
        with pooler(servers, tmp_path, sets_sessions=False) as url:
            _be_behind(url, monkeypatch)
            [sentence] = create_app().test_client().get("/readyz").json["errors"]["postgresql"]  # type: ignore[index]
            refused = CliRunner().invoke(users, ["show", "ada@example.com"])
            assert str(refused.exception) == sentence
            found = re.fullmatch(
                r"A session behind the pooler has (\w+) = .* the statement `(.*)` and let .*", sentence
            )
            assert found is not None, sentence
            assert found[1] == name
        _be_direct(servers, monkeypatch)
        books.execute(found[2])
        assert found[2].startswith(f"ALTER ROLE points IN DATABASE points SET {name} = ")
    with (
        pooler(servers, tmp_path, sets_sessions=False) as url,
        deployment(tmp_path / "behind", DATABASE_URL=url, POINTS_DATABASE_POOLER="true") as parts,
    ):
        _works(parts)
        lacking = parts.points("status")["settings_missing"]
        assert [one["name"] for one in lacking] == _ONLY_WISHED_FOR
        for one in lacking:
            books.execute(one["mend"])
    with pooler(servers, tmp_path, sets_sessions=False) as url:
        parts.environment["DATABASE_URL"] = url
        assert parts.points("status")["settings_missing"] == []


def test_of_a_database_that_a_setting_keeps_from_writing_status_names_the_setting(tmp_path: Path) -> None:
    with deployment(tmp_path) as parts:
        books.execute("ALTER DATABASE points SET default_transaction_read_only = on")
        try:
            down = parts.points("status")["down"]
        finally:
            books.execute("ALTER DATABASE points RESET ALL")
        assert "ALTER DATABASE points RESET default_transaction_read_only" in down[0]


def _be_behind(url: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("DATABASE_URL", url)
    monkeypatch.setenv("POINTS_DATABASE_POOLER", "true")
    forget_everything()


def _be_direct(servers: Servers, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("DATABASE_URL", servers.database_url)
    monkeypatch.delenv("POINTS_DATABASE_POOLER")
    forget_everything()


def _works(parts: Deployment) -> None:
    """See that what reads and writes times, lists with gaps and texts with signs is right."""
    parts.worker("worker1")
    port = free_port()
    parts.web(port)
    organization_id = books.make_organization(100)
    bearer = {"Authorization": f"Bearer {books.make_live_key(organization_id)}"}
    with httpx.Client(base_url=f"http://{ports.HOST}:{port}/v1", headers=bearer, timeout=60) as client:
        items = [{"email": "ada@example.com", "amount": 2, "label": r"=1\1"}, {"email": "bob@example.com", "amount": 3}]
        once = {"Idempotency-Key": "once"}
        sent, again = (client.post("/points/send", json={"items": items}, headers=once) for _ in range(2))
        assert (sent.status_code, again.json()["data"]) == (201, sent.json()["data"])
        first, second = sent.json()["data"]["transactions"]
        assert [(one["label"], one["reference"]) for one in (first, second)] == [(r"=1\1", None), (None, None)]
        assert _listed(client, created_from=first["created_at"], created_to=first["created_at"]) == [
            second["id"],
            first["id"],
        ]
        assert _listed(client, email="ada@example.com") == [first["id"]]
        day = first["created_at"][:10]
        statement = client.get("/statement", params={"from": day, "to": day}).json()["data"]
        assert (statement["total"]["debited"], statement["total"]["closing_balance"]) == (5, 95)
        imported = parts.logs / "people.csv"
        imported.write_text("email,first_name,last_name\nada@example.com,Ada,Lovelace\n")
        parts.points("users", "import", str(imported))
        batch = sent.json()["additional_data"]["batch_id"]
        assert client.post("/points/reverse", json={"batch": batch, "reason": "wrong"}).status_code == 201
        assert client.get("/organization").json()["data"]["balance"] == 100
    export = [POINTS, "export", "transactions", str(organization_id)]
    lines = subprocess.run(export, env=parts.environment, capture_output=True, check=True).stdout.decode().splitlines()
    assert lines[1].split(",")[2:6] == [first["created_at"], "ada@example.com", "", r"'=1\1"]
    assert parts.points("audit")["balanced"] is True


def _listed(client: httpx.Client, **filters: str) -> list[int]:
    return [one["id"] for one in client.get("/transactions", params=filters).json()["data"]["transactions"]]
