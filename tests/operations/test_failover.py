"""A failover of PostgreSQL behind a name that leads to the standby for a moment, while it still only reads."""

from pathlib import Path

import httpx
import pytest

import migrations
from app.local import ports
from tests.deadline import comes_true, until
from tests.integration import books
from tests.operations.balancer import balancer
from tests.operations.server import Server, standby_of
from tests.ports import free_port
from tests.service.deployment import deployment, is_ready

pytestmark = pytest.mark.usefixtures("broker")

_PATIENCE_S = 60
_END_ALL = "SELECT count(pg_terminate_backend(pid)) FROM pg_stat_activity WHERE usename = 'points'"


def test_web_and_worker_follow_the_name_to_the_primary(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    primary = Server(tmp_path / "primary")
    primary.postgresql.prepare()
    with primary.running(monkeypatch), balancer() as name:
        url = primary.postgresql.url()
        migrations.upgrade(url)
        standby = standby_of(primary, tmp_path)
        key = books.make_live_key(books.make_organization(1_000))
        with standby.running(monkeypatch):
            there, other = primary.port(), standby.port()
            name.targets = [there]
            with deployment(tmp_path, DATABASE_URL=url.replace(f":{there}/", f":{name.port}/")) as parts:
                port = free_port()
                parts.web(port)
                parts.worker("worker1")
                assert _send(port, key) == 201

                name.targets = [other]
                # Again and again: one that is being made has no name yet.
                until(lambda: primary.ask(_END_ALL) == "0", "none leads to the primary", within_s=_PATIENCE_S)
                until(lambda: not is_ready(port), "web says that it cannot write", within_s=_PATIENCE_S)
                assert {_send(port, key) for _ in range(5)} == {503}

                name.targets = [there]
                assert comes_true(lambda: is_ready(port), within_s=_PATIENCE_S)
                assert _send(port, key) == 201
                assert parts.deaths() == {}


def _send(port: int, key: str) -> int:
    return httpx.post(
        f"http://{ports.HOST}:{port}/v1/points/send",
        json={"recipient": "ada@example.com", "amount": 1},
        headers={"Authorization": f"Bearer {key}"},
        timeout=_PATIENCE_S,
    ).status_code
